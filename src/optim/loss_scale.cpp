#include "optim/loss_scale.h"

#include "base/error.h"

namespace bloomery {

void check_loss_scale(const LossScaleOptions& options) {
  check(options.initial > 0 && options.initial <= kMaxLossScale, "loss scale ", options.initial,
        ": it must be positive and fit fp32");
  if (options.dynamic) {
    check(options.minimum > 0 && options.minimum <= options.initial, "minimum loss scale ",
          options.minimum, ": it must be positive and at most the initial scale ", options.initial);
    check(options.window > 0 && options.hysteresis > 0, "loss scale window ", options.window,
          " and hysteresis ", options.hysteresis, ": both must be positive");
  }
}

}  // namespace bloomery
