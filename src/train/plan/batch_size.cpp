#include "train/plan/batch_size.h"

#include "base/error.h"

namespace bloomery {

BatchSize::BatchSize(std::int64_t global, std::optional<Rampup> rampup)
    : global_(global), rampup_(rampup) {
  if (rampup_ && rampup_->start == global_) {
    rampup_.reset();
  }
  if (rampup_) {
    const std::int64_t increments = (global_ - rampup_->start) / rampup_->increment;
    samples_per_increment_ =
        static_cast<double>(rampup_->samples) / static_cast<double>(increments);
  }
}

std::int64_t BatchSize::at(std::int64_t consumed_samples) const {
  if (!rampup_ || consumed_samples > rampup_->samples || samples_per_increment_ == 0) {
    return global_;
  }
  const auto steps =
      static_cast<std::int64_t>(static_cast<double>(consumed_samples) / samples_per_increment_);
  return rampup_->start + steps * rampup_->increment;
}

std::vector<BatchSize::Stage> BatchSize::stages() const {
  std::vector<Stage> stages;
  std::int64_t consumed = 0;
  while (rampup_ && consumed <= rampup_->samples && samples_per_increment_ > 0) {
    const std::int64_t batch = at(consumed);
    if (stages.empty() || stages.back().batch != batch) {
      stages.push_back({batch, consumed, 0});
    }
    // All steps of this size at once: a ramp may take millions of them.
    const std::int64_t increments = (batch - rampup_->start) / rampup_->increment + 1;
    const double end = static_cast<double>(increments) * samples_per_increment_;
    const std::int64_t guess = (static_cast<std::int64_t>(end) - consumed) / batch - 1;
    const std::int64_t steps = guess > 1 ? guess : 1;
    stages.back().iterations += steps;
    consumed += steps * batch;
  }
  if (!stages.empty() && stages.back().batch == global_) {
    stages.back().iterations = 0;
    return stages;
  }
  stages.push_back({global_, consumed, 0});
  return stages;
}

std::int64_t BatchSize::num_iterations(std::int64_t samples) const {
  std::int64_t iterations = 0;
  for (const Stage& stage : stages()) {
    const std::int64_t left = (samples - stage.first_sample) / stage.batch;
    if (stage.iterations == 0 || left <= stage.iterations) {
      return iterations + (left > 0 ? left : 0);
    }
    iterations += stage.iterations;
  }
  return iterations;
}

std::int64_t BatchSize::num_samples(std::int64_t iterations) const {
  for (const Stage& stage : stages()) {
    if (stage.iterations == 0 || iterations <= stage.iterations) {
      return stage.first_sample + iterations * stage.batch;
    }
    iterations -= stage.iterations;
  }
  return 0;  // the last stage has no end
}

std::vector<std::string> batch_problems(std::int64_t global, const std::optional<Rampup>& rampup,
                                        std::int64_t at_once) {
  std::vector<std::string> found;
  const auto require_multiple = [&](const char* what, std::int64_t value) {
    if (value % at_once != 0) {
      found.push_back(concat(what, " ", value, " is not a multiple of ", at_once,
                             ", micro-batch size x data-parallel ranks"));
    }
  };
  require_multiple("the global batch size", global);
  if (!rampup) {
    return found;
  }
  if (rampup->start < 1 || rampup->start > global || rampup->increment < 1) {
    found.push_back(concat("--rampup-batch-size ", rampup->start, " ", rampup->increment, " ",
                           rampup->samples, ": start and increment must be at least 1, and the ",
                           "start at most the global batch size ", global));
    return found;
  }
  if ((global - rampup->start) % rampup->increment != 0) {
    found.push_back(concat("--rampup-batch-size: from ", rampup->start, " the increment ",
                           rampup->increment, " does not reach the global batch size ", global));
  }
  constexpr std::int64_t kMostSteps = 1'000'000;
  if ((global - rampup->start) / rampup->increment > kMostSteps) {
    found.push_back(concat("--rampup-batch-size: from ", rampup->start, " to ", global,
                           " in steps of ", rampup->increment, " are more than ", kMostSteps,
                           " steps"));
  }
  require_multiple("the first batch size", rampup->start);
  if (rampup->start != global) {
    require_multiple("the increment of the batch size", rampup->increment);
  }
  return found;
}

}  // namespace bloomery
