#include "train/run/skipped_steps.h"

#include "base/error.h"

namespace bloomery {
namespace {

constexpr const char* kAdvice =
    "resume from a checkpoint before it with a lower --lr or other data";

}  // namespace

SkippedSteps::SkippedSteps(const StopOptions& stop, bool stop_at_min_scale,
                           const LossScaleOptions& scale)
    : stop_(stop), stop_at_min_scale_(stop_at_min_scale), scale_(scale) {}

std::string SkippedSteps::streak() const {
  return concat(in_a_row_, in_a_row_ == 1 ? " step" : " steps in a row", ", from iteration ",
                first_, " on, ", in_a_row_ == 1 ? "was" : "were",
                " skipped because gradients were not finite");
}

SkippedSteps::Finding SkippedSteps::add(std::int64_t iteration, const StepReport& update) {
  ++steps_;
  // A dynamic scale finds its place by such steps; only at the smallest they mean something.
  const bool counts = update.skipped && (!scale_.dynamic || update.loss_scale <= scale_.minimum);
  if (!counts) {
    in_a_row_ = 0;
    return {};
  }
  first_ = in_a_row_ == 0 ? iteration : first_;
  ++in_a_row_;
  Finding found;
  if (stop_at_min_scale_ && update.scale_exhausted) {
    found.end = concat("the gradients of iteration ", iteration,
                       " are not finite at the lowest loss scale, ", scale_.minimum,
                       ": it cannot fall further, so the run has diverged and ends "
                       "(--stop-at-min-loss-scale); ",
                       kAdvice);
  } else if (in_a_row_ == stop_.skipped_until_stop) {
    found.end =
        concat(streak(), ": the run has diverged and ends (--stop-after-skipped); ", kAdvice);
  } else if (in_a_row_ == stop_.skipped_until_warning) {
    found.warning = concat(
        streak(), ": the weights do not change any more. Look at the data and --lr",
        stop_.skipped_until_stop > 0
            ? concat("; the run ends after ", stop_.skipped_until_stop, " (--stop-after-skipped)")
            : "");
  }
  return found;
}

std::string SkippedSteps::at_end() const {
  const bool all = in_a_row_ > 0 && in_a_row_ == steps_;
  const bool many = stop_.skipped_until_warning > 0 && in_a_row_ >= stop_.skipped_until_warning;
  return all || many ? concat(streak(), ": the run has diverged; ", kAdvice) : "";
}

}  // namespace bloomery
