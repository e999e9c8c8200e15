#include "train/step/graph_choice.h"

#include <gtest/gtest.h>

#include "train/step/rank_options.h"

namespace bloomery {
namespace {

using Step = GraphTrial::Step;

// A trial to its end: what launched and replayed steps took, in turn the least and more.
GraphTrial after_trial(GraphChoice choice, double launched, double replayed) {
  GraphTrial trial(choice);
  trial.begun(Step::other);
  EXPECT_FALSE(trial.wants_graphs());
  trial.begun(Step::launched);
  EXPECT_FALSE(trial.wants_graphs());
  trial.begun(Step::launched);
  EXPECT_TRUE(trial.wants_graphs());
  trial.add_time(Step::other, 1e-9);  // of steps that say nothing
  for (const double more : {1.5, 1.0}) {
    trial.add_time(Step::launched, launched * more);
  }
  trial.add_time(Step::replayed, replayed * 2);
  EXPECT_FALSE(trial.settled());
  EXPECT_TRUE(trial.wants_graphs()) << "until the times of two are known";
  EXPECT_EQ(trial.verdict(), "");
  trial.add_time(Step::replayed, replayed);
  EXPECT_TRUE(trial.settled());
  return trial;
}

TEST(GraphTrial, ComparesTheLeastTimes) {
  const GraphTrial better = after_trial(GraphChoice::automatic, 3e-3, 2e-3);
  EXPECT_TRUE(better.wants_graphs());
  EXPECT_EQ(better.verdict(),
            " passes are replayed as CUDA graphs: 2.00 ms a step, launched 3.00 ms");
  const GraphTrial worse = after_trial(GraphChoice::automatic, 2e-3, 3e-3);
  EXPECT_FALSE(worse.wants_graphs());
  EXPECT_EQ(worse.verdict(),
            " passes are launched, not replayed as CUDA graphs: 3.00 ms a step, launched 2.00 ms");
}

TEST(GraphTrial, DoesAsItIsTold) {
  EXPECT_TRUE(after_trial(GraphChoice::on, 2e-3, 3e-3).wants_graphs());
  GraphTrial off(GraphChoice::off);
  for (int i = 0; i < 5; ++i) {
    off.begun(Step::launched);
  }
  EXPECT_FALSE(off.wants_graphs());
  EXPECT_TRUE(off.settled());
  EXPECT_EQ(off.verdict(), "");
}

TEST(GraphTrial, GivesUp) {
  GraphTrial trial(GraphChoice::on);
  trial.give_up("the host reads what a pass found");
  EXPECT_TRUE(trial.settled());
  EXPECT_FALSE(trial.wants_graphs());
  EXPECT_EQ(trial.verdict(),
            " passes are not replayed as CUDA graphs: the host reads what a pass found");
}

TEST(GraphTrial, StartsOverWhereStepsAreOthersUnlessItIsSettled) {
  GraphTrial trial(GraphChoice::automatic);
  trial.begun(Step::launched);
  trial.begun(Step::launched);
  trial.start_over();
  EXPECT_FALSE(trial.wants_graphs());
  GraphTrial over = after_trial(GraphChoice::automatic, 3e-3, 2e-3);
  over.start_over();
  EXPECT_TRUE(over.wants_graphs());
}

TEST(GraphRefusal, NamesWhatCannotBeCaptured) {
  RankOptions options;
  EXPECT_EQ(graph_refusal(options, 1, DeviceKind::cuda), "");
  options.fp8.emplace();
  options.recompute.method = RecomputeOptions::Method::uniform;
  EXPECT_EQ(graph_refusal(options, 1, DeviceKind::cuda), "");
  const auto refused = [](const auto& change, const char* why) {
    RankOptions changed;
    change(changed);
    EXPECT_NE(graph_refusal(changed, 1, DeviceKind::cuda).find(why), std::string::npos) << why;
  };
  EXPECT_NE(graph_refusal(options, 2, DeviceKind::cuda).find("several ranks"), std::string::npos);
  EXPECT_NE(graph_refusal(options, 1, DeviceKind::cpu).find("no GPU"), std::string::npos);
  EXPECT_NE(graph_refusal(options, 1, DeviceKind::abstract).find("no GPU"), std::string::npos);
  refused([](RankOptions& o) { o.layout.schedule = PipelineSchedule::gpipe; }, "micro-batches");
  refused([](RankOptions& o) { o.offload.optimizer_share = 0.5; }, "offloading");
  refused([](RankOptions& o) { o.sequence_chunk = 64; }, "chunks");
  refused([](RankOptions& o) { o.teacher.emplace(); }, "teacher");
  refused([](RankOptions& o) { o.token_dropping_layers = {1}; }, "drop");
  refused([](RankOptions& o) { o.layer_drop.emplace(); }, "drop");
  refused([](RankOptions& o) { o.grids["a weight"]; }, "bits");
}

}  // namespace
}  // namespace bloomery
