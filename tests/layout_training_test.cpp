// Steps and evaluations under layouts, with what the table of layouts (layout_table_test.cpp)
// leaves out: recomputation, uneven stages and the wish to stop.
#include <gtest/gtest.h>

#include <mutex>

#include "comm/threads.h"
#include "train/parity/layout_text.h"
#include "train/step/rank.h"

namespace bloomery::testing {
namespace {

constexpr int kMicroBatches = 8, kSteps = 4;
constexpr std::int64_t kSequences = 2, kLength = 20, kVocabulary = 93;

RankOptions tiny(bool untied = false) {
  RankOptions options;
  options.model.num_layers = 4;
  options.model.hidden_size = 32;
  options.model.attention.num_heads = 4;
  options.model.vocabulary.size = kVocabulary;
  options.model.vocabulary.divisible_by = 8;
  options.model.vocabulary.untied = untied;
  options.model.positions.max_length = 32;
  options.model.attention.dropout = options.model.residual.dropout = 0.1f;
  options.model.init.std = 0.1;
  options.device = {.num_threads = 1, .poison = true};
  options.optimizer.schedule.learning_rate = 1e-3;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  options.optimizer.schedule.weight_decay = 0.1;
  return options;
}

// The micro-batches of a data-parallel rank: every data_ranks-th of the step.
std::vector<HostBatch> step_batches(int step, int data_rank, int data_ranks) {
  std::vector<HostBatch> batches;
  for (int m = data_rank; m < kMicroBatches; m += data_ranks) {
    batches.push_back(
        random_batch(kSequences, kLength, kVocabulary, 7, (step * kMicroBatches + m) * kSequences));
  }
  return batches;
}

struct Training {
  std::vector<Rank::Result> steps;
  double evaluation = 0;
};

Training train(const RankOptions& options) {
  Training result;
  std::mutex mutex;
  const auto body = [&](int number, std::unique_ptr<Communicator> world) {
    Rank rank(options, std::move(world));
    const int data = rank.mesh().coordinate(Axis::data), ranks = rank.mesh().degree(Axis::data);
    Training mine;
    for (int step = 0; step < kSteps; ++step) {
      mine.steps.push_back(rank.step(step_batches(step, data, ranks)));
    }
    const auto batches = step_batches(99, data, ranks);
    const Rank::Losses losses =
        rank.evaluate({static_cast<std::int64_t>(batches.size()), [&](std::int64_t m) {
                         return rank.upload(batches[static_cast<std::size_t>(m)]);
                       }});
    ASSERT_EQ(losses.size(), 1u);
    EXPECT_EQ(losses[0].name, "lm loss");
    mine.evaluation = losses[0].value;
    const std::lock_guard lock(mutex);
    if (number == 0) {
      result = mine;
    }
  };
  run_ranks(options.layout.degrees.num_ranks(), body, {.timeout_seconds = 120});
  return result;
}

void expect_equal(RankOptions options, const Layout& layout, const Training& one,
                  const std::string& what) {
  options.layout = layout;
  const Training several = train(options);
  ASSERT_EQ(several.steps.size(), one.steps.size()) << what;
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    EXPECT_NEAR(several.steps[i].loss, one.steps[i].loss, 1e-5 * one.steps[i].loss) << what;
    EXPECT_NEAR(several.steps[i].grad_norm, one.steps[i].grad_norm, 1e-5 * one.steps[i].grad_norm)
        << what << ", step " << i;
  }
  EXPECT_NEAR(several.evaluation, one.evaluation, 1e-5 * one.evaluation) << what;
}

TEST(Layouts, EvaluateAndRecomputeLikeOneRank) {
  RankOptions options = tiny();
  const Training one = train(options);
  options.recompute = {RecomputeOptions::Method::uniform, 2};
  for (const char* layout :
       {"dp2z3", "pp2v2", "pp2gpipe+dp2z1", "tp4sp", "tp2sp+ul2+pp2zb", "tp2sp+cp2+dp2z3"}) {
    expect_equal(options, parse_layout(layout), one, layout);
  }
}

TEST(Pipeline, StagesMayHaveDifferentNumbersOfLayersButNotNone) {
  const RankOptions options = tiny();
  expect_equal(options, {.degrees = {.pipeline = 3}}, train(options), "three stages");
  RankOptions five = options;
  five.layout.degrees.pipeline = 5;
  EXPECT_THROW(train(five), Error);
}

TEST(Stop, IsHeardOnEveryRankWhoeverWantsIt) {
  for (int asking = 0; asking < 4; ++asking) {
    RankOptions options = tiny();
    options.layout.degrees = {.tensor = 2, .pipeline = 2};
    run_ranks(4, [&](int number, std::unique_ptr<Communicator> world) {
      Rank rank(options, std::move(world));
      const HostBatch host = random_batch(kSequences, kLength, kVocabulary, 7, 0);
      for (int step = 0; step < 2; ++step) {
        rank.enqueue_gradients({1, [&](std::int64_t) { return rank.upload(host); }});
        rank.enqueue_reduction();
        rank.enqueue_update(kSequences, step == 1 && number == asking);
      }
      EXPECT_FALSE(rank.outcome(1).stop);
      EXPECT_TRUE(rank.outcome(0).stop);
      EXPECT_EQ(rank.outcome(0).losses.front().name, "lm loss");
    });
  }
}

}  // namespace
}  // namespace bloomery::testing
