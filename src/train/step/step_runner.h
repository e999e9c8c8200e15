// Runs the forward and backward passes of a step on a stage: the instructions of its pipeline
// schedule, launched or replayed as CUDA graphs.
#pragma once

#include "train/step/executor.h"
#include "train/step/loss_board.h"
#include "train/step/step_clock.h"
#include "train/step/step_graphs.h"
#include "train/step/step_input.h"

namespace bloomery {

class StepRunner {
 public:
  // Stage and board must outlive it.
  StepRunner(Stage& stage, LossBoard& losses);

  // This rank's part of the gradients of the mean loss over all ranks' micro-batches. Losses go to
  // the board. end_step() ends what this begins.
  void enqueue_gradients(const StepInput& input);
  void enqueue_reduction();  // what is left of summing the parts
  void end_step();

  // Without gradients and dropout.
  void run_forward(const StepInput& input, PassReader& reader);

  // Whether passes are replayed as CUDA graphs in the next steps, as far as that depends on
  // earlier ones; they are launched where somebody times them, and where shapes have changed.
  bool replays_graphs() const;
  bool graphs_settled() const;        // for the rest of the run
  std::string graph_verdict() const;  // for logs, once it is settled; empty: nothing to say

  Executor& executor() { return executor_; }
  StepClock& clock() { return clock_; }

 private:
  PipelineShape pipeline_shape(std::int64_t num_micro_batches) const;
  void begin_passes(const StepInput& input);
  void run_in_graphs(const StepInput& input, std::int64_t parts);
  void tell_graphs_of_times();
  ExecutorWork training_work(const StepInput& input, const Tensor& grad_scale);

  Stage& stage_;
  LossBoard& losses_;
  Executor executor_;
  std::unique_ptr<StepGraphs> graphs_;  // null: passes are always launched
  StepClock clock_;
  bool in_graphs_ = false;  // the step in work is graphs_'
};

}  // namespace bloomery
