#include "train/plan/step_lengths.h"

#include <algorithm>
#include <limits>

#include "samples/sequence_rows.h"

namespace bloomery {

std::int64_t StepLengths::length(std::int64_t iteration) const {
  return curriculum ? std::min(curriculum->at(iteration), full) : full;
}

std::int64_t StepLengths::kept(std::int64_t iteration) const {
  const std::int64_t kept = kept_tokens ? kept_tokens->schedule.at(iteration - 1) : 0;
  return kept < length(iteration) ? kept : 0;
}

std::int64_t StepLengths::counted_length(std::int64_t iteration) const {
  const std::int64_t all = length(iteration), some = kept(iteration);
  if (some == 0) {
    return all;
  }
  const auto& [schedule, layers, total] = *kept_tokens;
  return (all * (total - layers) + some * layers) / total;
}

std::int64_t StepLengths::tokens(std::int64_t iteration, std::int64_t samples) const {
  const std::int64_t rows =
      reshape ? samples / micro_batch * reshaped_rows(micro_batch, full, length(iteration))
              : samples * sequences;
  return rows * counted_length(iteration);
}

std::int64_t StepLengths::constant_from() const {
  return std::max(curriculum ? curriculum->constant_from() : 0,
                  kept_tokens ? kept_tokens->schedule.constant_from() + 1 : 0);
}

RunLength run_length(const StepLengths& lengths, const BatchSize& batch,
                     std::int64_t most_iterations, std::optional<std::int64_t> most_tokens) {
  RunLength run;
  const std::int64_t settled = lengths.constant_from();
  const auto goes_on = [&] {
    return run.iterations < most_iterations && (!most_tokens || run.tokens < *most_tokens);
  };
  const auto take = [&](std::int64_t steps, std::int64_t samples, std::int64_t tokens) {
    run.iterations += steps;
    run.samples += steps * samples;
    run.tokens += steps * tokens;
  };
  for (const BatchSize::Stage& stage : batch.stages()) {
    const std::int64_t end = stage.iterations > 0 ? run.iterations + stage.iterations
                                                  : std::numeric_limits<std::int64_t>::max();
    while (goes_on() && run.iterations < end && run.iterations + 1 < settled) {
      take(1, stage.batch, lengths.tokens(run.iterations + 1, stage.batch));
    }
    if (goes_on() && run.iterations < end) {  // equal steps
      const std::int64_t each = lengths.tokens(run.iterations + 1, stage.batch);
      std::int64_t steps = std::min(end, most_iterations) - run.iterations;
      if (most_tokens) {
        steps = std::min(steps, (*most_tokens - run.tokens + each - 1) / each);
      }
      take(steps, stage.batch, each);
    }
  }
  return run;
}

}  // namespace bloomery
