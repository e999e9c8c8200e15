#include "train/step/step_runner.h"

#include <gtest/gtest.h>

#include "train/step/rank_case.h"

namespace bloomery::testing {
namespace {

struct Step {
  std::vector<float> gradients;
  double loss = 0;
  bool operator==(const Step&) const = default;
};

class Runner {
 public:
  explicit Runner(const RankOptions& options)
      : stage_(options, make_self_communicator()),
        board_(stage_.stream(), stage_.mesh(), DType::fp32),
        runner_(stage_, board_) {}

  Step step(StepInput input) {
    input.num_micro_batches = 2;
    input.batch = samples_on(stage_.stream());
    runner_.enqueue_gradients(input);
    Step step{gradients(stage_)};
    step.loss = board_.means().front().value;
    runner_.end_step();
    return step;
  }
  double evaluate(const StepInput& of = {}) {
    StepInput input = of;
    input.num_micro_batches = 2;
    input.batch = samples_on(stage_.stream());
    board_.begin(2);
    runner_.run_forward(input, board_);
    return board_.means().front().value;
  }

 private:
  Stage stage_;
  LossBoard board_;
  StepRunner runner_;
};

// Nothing of a step is left for the next one, as nothing was learnt.
TEST(StepRunner, AStepFollowsFromItsInputAlone) {
  RankOptions options = small_rank();
  options.model.num_layers = 4;
  options.layer_drop = LayerDropOptions{.theta = 0.2, .gamma = 1};
  Runner runner(options);
  const Step first = runner.step({});
  EXPECT_GT(first.loss, 1);
  const Step later = runner.step({.completed_steps = 1000});
  EXPECT_NE(later.gradients, first.gradients) << "layers are dropped by then";
  EXPECT_EQ(runner.step({}), first);
  EXPECT_EQ(runner.step({.completed_steps = 1000}), later);
}

TEST(StepRunner, DropsTokensAsTheInputSays) {
  RankOptions options = small_rank();
  options.token_dropping_layers = {0};
  Runner runner(options);
  const Step whole = runner.step({});
  const Step some = runner.step({.kept_tokens = 4});
  EXPECT_NE(some.loss, whole.loss);
  EXPECT_EQ(runner.step({.kept_tokens = kLength}), whole) << "all of them";
  EXPECT_EQ(runner.step({}), whole);
}

TEST(StepRunner, EvaluationsHaveNoDropoutAndLeaveNoTrace) {
  RankOptions options = small_rank();
  options.model.residual.dropout = 0.5;
  Runner runner(options);
  const Step before = runner.step({});
  const double loss = runner.evaluate();
  EXPECT_NE(loss, before.loss);
  EXPECT_EQ(runner.evaluate({.completed_steps = 7, .kept_tokens = 3}), loss);
  EXPECT_EQ(runner.step({}), before);
  options.training = false;
  EXPECT_NEAR(Runner(options).step({}).loss, loss, 1e-6);
}

TEST(StepRunner, LaunchesPassesWithoutAGpu) {
  Stage stage(small_rank(), make_self_communicator());
  LossBoard board(stage.stream(), stage.mesh(), DType::fp32);
  const StepRunner runner(stage, board);
  EXPECT_FALSE(runner.replays_graphs());
  EXPECT_TRUE(runner.graphs_settled());
  EXPECT_EQ(runner.graph_verdict(), "");
}

}  // namespace
}  // namespace bloomery::testing
