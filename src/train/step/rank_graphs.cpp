// How a rank's step uses CUDA graphs (step_graphs.h).
#include "ops/arithmetic/arithmetic.h"
#include "train/step/rank.h"
#include "train/step/step_graphs.h"

namespace bloomery {

bool Rank::replays_graphs() const { return graphs_ && graphs_->trial().wants_graphs(); }

bool Rank::graphs_settled() const { return !graphs_ || graphs_->trial().settled(); }

std::string Rank::graph_verdict() const {
  const std::string refusal = options_.graphs == GraphChoice::on
                                  ? graph_refusal(options_, mesh_->world().size(), device_->kind())
                                  : std::string();
  if (!refusal.empty()) {
    return concat(" passes are not replayed as CUDA graphs: ", refusal);
  }
  return graphs_ ? graphs_->trial().verdict() : std::string();
}

// Each micro-batch is replayed, or launched from the same slots: the first steps, which make plans
// and get the memory, and those that a capture will follow, take what the capture takes.
void Rank::run_in_graphs(std::int64_t num_micro_batches, const BatchSource& batch,
                         std::int64_t parts) {
  tell_graphs_of_times();
  ExecutorWork work = training_work([this](std::int64_t) { return graphs_->batch(); },
                                    graphs_->grad_scale(), parts);
  const auto launch_passes = [&](std::int64_t micro_batch, std::vector<Parameter*>* contributions) {
    work.contributions = contributions;
    executor_->run(std::array{Instruction{Instruction::Work::forward, micro_batch},
                              Instruction{Instruction::Work::backward, micro_batch}},
                   work);
  };
  if (graphs_->begin_step(parts)) {
    graphs_->capture(num_micro_batches, launch_passes);
    begin_passes(num_micro_batches);  // anew: nothing has run
  }
  launch(*stream_, ScaleAdd{.x = optimizer_->loss_scale(),
                            .y = graphs_->grad_scale(),
                            .factor = static_cast<float>(1.0 / static_cast<double>(parts))});
  for (std::int64_t m = 0; m < num_micro_batches; ++m) {
    graphs_->fill(batch(m));
    if (const std::vector<Parameter*>* const contributions = graphs_->replay(m)) {
      for (Parameter* const parameter : *contributions) {
        parameter->grad_written = true;
        reducer_->contributed(*parameter, m);
      }
    } else {
      launch_passes(m, nullptr);
    }
  }
}

// Of the step before the last, which the host has usually waited for: one that runs further ahead
// waits here while the trial lasts.
void Rank::tell_graphs_of_times() {
  if (graphs_->trial().settled() || times_.size() < 2) {
    return;
  }
  const StepTime& step = times_[1];
  if (step.kind != GraphTrial::Step::other) {
    step.end->synchronize();
    graphs_->add_time(step.kind, step.parts, step.end->seconds_since(*step.begin));
  }
}

}  // namespace bloomery
