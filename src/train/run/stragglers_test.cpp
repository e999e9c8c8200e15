#include "train/run/stragglers.h"

#include <gtest/gtest.h>

#include <mutex>

#include "comm/error_case.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

struct Said {
  std::string warning, summary;
};

// What the first of `seconds.size()` data-parallel ranks says when each needed so long for two
// steps, of which it waited `waited`.
Said said_of(const std::vector<double>& seconds, double waited) {
  Said said;
  run_ranks(static_cast<int>(seconds.size()), [&](int number, std::unique_ptr<Communicator> world) {
    RankOptions options;
    options.model.num_layers = 1;
    options.model.hidden_size = 16;
    options.model.attention.num_heads = 2;
    options.model.vocabulary.size = 50;
    options.model.positions.max_length = 8;
    options.device = {.num_threads = 1};
    options.layout.degrees.data = static_cast<int>(seconds.size());
    Rank rank(options, std::move(world));
    Stragglers stragglers(rank, 10);
    Rank::Outcome step;
    step.seconds = seconds[static_cast<std::size_t>(number)] / 2 + waited;
    step.waited = waited;
    stragglers.add(step);
    stragglers.add(step);
    const std::string warning = stragglers.report();
    EXPECT_EQ(stragglers.report(), "") << "nothing was added since";
    if (number == 0) {
      said = {warning, stragglers.summary()};
    } else {
      EXPECT_EQ(warning, "");
    }
  });
  return said;
}

TEST(Stragglers, TheSlowestIsNamedWithItsTimeAndTheMedian) {
  const Said said = said_of({2, 2.1, 3, 2}, 5);
  EXPECT_TRUE(said.warning.starts_with("rank 2 on ")) << said.warning;
  EXPECT_TRUE(contains(said.warning, "1500.0 ms of each step")) << said.warning;
  EXPECT_TRUE(contains(said.warning, "1000.0 ms; all wait for it")) << said.warning;
  EXPECT_TRUE(contains(said.summary, "in 1 of 2 log intervals")) << said.summary;
}

TEST(Stragglers, SmallDifferencesAndShortTimesAreNone) {
  EXPECT_EQ(said_of({2, 2.1, 2.15, 2}, 0).warning, "");
  EXPECT_EQ(said_of({0.002, 0.002, 0.01}, 0).warning, "");
  EXPECT_EQ(said_of({2, 2.1, 2.15, 2}, 0).summary, "");
}

}  // namespace
}  // namespace bloomery
