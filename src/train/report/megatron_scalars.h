// The scalars that Megatron-DeepSpeed shows in TensorBoard, under its names.
#pragma once

#include <cstdint>

#include "train/report/event_file.h"
#include "train/report/status_lines.h"

namespace bloomery {

// Which of the scalars are wanted, by Megatron's flags and with its defaults.
struct ScalarChoice {
  bool learning_rate = true;
  bool loss_scale = true;  // only with fp16
  bool batch_size = false, world_size = false, timers = false, memory = false;
  bool validation_perplexity = false;
};

// Every scalar over iterations, and most also `vs samples` and `vs tokens`. Nothing is flushed.
void add_iteration_scalars(EventFile& events, const IterationReport& report,
                           const ScalarChoice& choice, std::int64_t world_size, double now);
void add_evaluation_scalars(EventFile& events, const EvaluationReport& report,
                            std::int64_t consumed_samples, std::int64_t consumed_tokens,
                            const ScalarChoice& choice, double now);
// Each argument as a text, as Megatron writes them at the start.
void add_argument_texts(EventFile& events, const ArgumentList& arguments, std::int64_t iteration,
                        double now);

}  // namespace bloomery
