#include "train/step/step_runner.h"

#include <array>

#include "ops/arithmetic/arithmetic.h"
#include "train/step/stage.h"
#include "train/step/teacher.h"

namespace bloomery {

StepRunner::StepRunner(Stage& stage, LossBoard& losses)
    : stage_(stage),
      losses_(losses),
      executor_(stage),
      graphs_(make_step_graphs(stage.options(), stage.mesh().world().size(), stage.stream())),
      clock_(stage.stream()) {}

PipelineShape StepRunner::pipeline_shape(std::int64_t num_micro_batches) const {
  return {stage_.mesh().degree(Axis::pipeline), num_micro_batches, stage_.options().layout.chunks};
}

void StepRunner::enqueue_gradients(const StepInput& input) {
  const std::int64_t parts = input.num_micro_batches * stage_.mesh().degree(Axis::data);
  clock_.begin(parts);
  begin_passes(input);
  losses_.begin(parts);
  in_graphs_ = graphs_ && graphs_->wanted() && !executor_.observed();
  if (in_graphs_) {
    return run_in_graphs(input, parts);
  }
  executor_.run(
      instructions(stage_.options().layout.schedule, stage_.mesh().coordinate(Axis::pipeline),
                   pipeline_shape(input.num_micro_batches)),
      training_work(input, stage_.optimizer().grad_scale(parts)));
}

void StepRunner::begin_passes(const StepInput& input) {
  stage_.store().begin_step(input.num_micro_batches);
  if (Teacher* const teacher = stage_.teacher()) {
    teacher->begin_pass();
  }
  stage_.features().begin_pass(
      {.completed_steps = input.completed_steps, .kept_tokens = input.kept_tokens});
}

ExecutorWork StepRunner::training_work(const StepInput& input, const Tensor& grad_scale) {
  return {.batch = input.batch,
          .reader = losses_,
          .grad_scale = grad_scale,
          .teacher = input.taught ? stage_.teacher() : nullptr};
}

// Each micro-batch is replayed, or launched from the same slots: the first steps, which make plans
// and get the memory, and those that a capture will follow, take what the capture takes.
void StepRunner::run_in_graphs(const StepInput& input, std::int64_t parts) {
  tell_graphs_of_times();
  ExecutorWork work = training_work(input, graphs_->grad_scale());
  work.batch = [this](std::int64_t) { return graphs_->batch(); };
  const auto launch_passes = [&](std::int64_t micro_batch, std::vector<Parameter*>* contributions) {
    work.contributions = contributions;
    executor_.run(std::array{Instruction{Instruction::Work::forward, micro_batch},
                             Instruction{Instruction::Work::backward, micro_batch}},
                  work);
  };
  if (graphs_->begin_step(parts)) {
    graphs_->capture(input.num_micro_batches, launch_passes);
    begin_passes(input);  // anew: nothing has run
  }
  launch(stage_.stream(), ScaleAdd{.x = stage_.optimizer().loss_scale(),
                                   .y = graphs_->grad_scale(),
                                   .factor = static_cast<float>(1.0 / static_cast<double>(parts))});
  for (std::int64_t m = 0; m < input.num_micro_batches; ++m) {
    graphs_->fill(input.batch(m));
    if (const std::vector<Parameter*>* const contributions = graphs_->replay(m)) {
      for (Parameter* const parameter : *contributions) {
        parameter->grad_written = true;
        stage_.reducer().contributed(*parameter, m);
      }
    } else {
      launch_passes(m, nullptr);
    }
  }
}

// Of the step before the last, which the host has usually waited for: one that runs further ahead
// waits here while the trial lasts.
void StepRunner::tell_graphs_of_times() {
  if (graphs_->trial().settled() || clock_.num_steps() < 2) {
    return;
  }
  const StepClock::Step& step = clock_.step(1);
  if (step.kind != GraphTrial::Step::other) {
    graphs_->add_time(step.kind, step.parts, step.seconds());
  }
}

void StepRunner::enqueue_reduction() {
  clock_.begin_reduction();
  stage_.reducer().finish_step();
  stage_.finish_passes();
  clock_.end_reduction();
}

void StepRunner::end_step() {
  clock_.end(in_graphs_ ? graphs_->end_step() : GraphTrial::Step::other);
}

void StepRunner::run_forward(const StepInput& input, PassReader& reader) {
  stage_.store().begin_pass(Pass::evaluation);
  stage_.features().begin_pass({.completed_steps = input.completed_steps, .training = false});
  executor_.run(forward_only(stage_.mesh().coordinate(Axis::pipeline),
                             pipeline_shape(input.num_micro_batches)),
                {.batch = input.batch, .reader = reader, .training = false});
  stage_.hear_of_failures();
}

bool StepRunner::replays_graphs() const { return graphs_ && graphs_->trial().wants_graphs(); }

bool StepRunner::graphs_settled() const { return !graphs_ || graphs_->trial().settled(); }

std::string StepRunner::graph_verdict() const {
  const RankOptions& options = stage_.options();
  const std::string refusal =
      options.graphs == GraphChoice::on
          ? graph_refusal(options, stage_.mesh().world().size(), stage_.stream().device().kind())
          : std::string();
  if (!refusal.empty()) {
    return concat(" passes are not replayed as CUDA graphs: ", refusal);
  }
  return graphs_ ? graphs_->trial().verdict() : std::string();
}

}  // namespace bloomery
