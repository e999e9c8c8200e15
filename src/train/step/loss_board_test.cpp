// Losses that a stage of a pipeline reports in some steps only.
#include <gtest/gtest.h>

#include "comm/threads.h"
#include "train/step/rank.h"

namespace bloomery {
namespace {

std::vector<std::string> names(const Rank::Outcome& outcome) {
  std::vector<std::string> all;
  for (const NamedLoss& loss : outcome.losses) {
    all.push_back(loss.name);
  }
  return all;
}

// The last layer, which has experts, is left out of the first steps, so that the loss of the
// language model is all that the stages have to tell of them.
TEST(LossNames, ThatComeLaterAreLearnedAndNoWishToStop) {
  RankOptions options;
  options.model.num_layers = 2;
  options.model.hidden_size = 16;
  options.model.attention.num_heads = 2;
  options.model.vocabulary.size = 50;
  options.model.positions.max_length = 16;
  options.model.moe.num_experts = {2};
  options.device = {.num_threads = 1};
  options.layer_drop = LayerDropOptions{.theta = 1e-9, .gamma = 1};
  options.layout.degrees.pipeline = 2;
  run_ranks(2, [&](int, std::unique_ptr<Communicator> world) {
    Rank rank(options, std::move(world));
    const HostBatch host = random_batch(1, 16, 50, 1, 0);
    std::vector<double> first;
    for (int step = 0; step < 8; ++step) {
      rank.enqueue_gradients({.num_micro_batches = 1,
                              .batch = [&](std::int64_t) { return rank.upload(host); },
                              .completed_steps = step < 3 ? 1000 : 0});
      rank.enqueue_reduction();
      rank.enqueue_update(1);
      const Rank::Outcome outcome = rank.outcome(0);
      EXPECT_FALSE(outcome.stop) << step;
      EXPECT_EQ(outcome.losses.front().name, "lm loss");
      EXPECT_GT(outcome.loss, 0);
      if (step < 3) {
        EXPECT_EQ(names(outcome), std::vector<std::string>{"lm loss"}) << step;
      } else if (step >= 5) {
        ASSERT_GT(outcome.losses.size(), 1u) << step;
        EXPECT_EQ(names(outcome)[1], "moe loss");
        EXPECT_GT(outcome.losses[1].value, 0);
      }
    }
  });
}

}  // namespace
}  // namespace bloomery
