// The factor on the loss that keeps fp16 gradients representable, with Megatron's rules: doubled
// after a window of clean steps, halved on overflow once the tolerated overflows are used up. A
// clean step does not give tolerance back unless that is asked for, only growth does. Host and
// device share the code.
#pragma once

#include <cstdint>

namespace bloomery {

struct LossScaleOptions {
  bool dynamic = false;
  double initial = 1;  // the scale itself when it is not dynamic; 1 for bf16 and fp32
  double minimum = 1;
  std::int64_t window = 1000;           // clean steps before it grows
  std::int64_t hysteresis = 2;          // overflows until it shrinks
  bool consecutive_hysteresis = false;  // a clean step gives all tolerance back: DeepSpeed's
};

// Megatron's defaults for fp16 without a given scale.
constexpr LossScaleOptions dynamic_loss_scale() {
  return {.dynamic = true, .initial = 4294967296.0};
}

void check_loss_scale(const LossScaleOptions& options);

struct LossScale {
  double scale = 1;
  std::int64_t clean_steps = 0;     // since the last growth or overflow
  std::int64_t tolerance_left = 0;  // overflows; shrinks the scale when it is not positive
};

constexpr LossScale initial_loss_scale(const LossScaleOptions& options) {
  return {.scale = options.initial, .tolerance_left = options.hysteresis};
}

constexpr double kMaxLossScale = 0x1p127;  // fp32 on its way to the loss

// False: the scale had to shrink, but is the smallest already. There DeepSpeed gives up.
constexpr bool update_loss_scale(const LossScaleOptions& options, LossScale& state, bool overflow) {
  if (!options.dynamic) {
    return true;
  }
  if (overflow) {
    state.clean_steps = 0;
    state.tolerance_left -= 1;
    if (state.tolerance_left <= 0) {
      const bool smallest = state.scale <= options.minimum;
      const double halved = state.scale * 0.5;
      state.scale = halved > options.minimum ? halved : options.minimum;
      return !smallest;
    }
    return true;
  }
  if (options.consecutive_hysteresis) {
    state.tolerance_left = options.hysteresis;
  }
  if (++state.clean_steps == options.window) {
    state.clean_steps = 0;
    state.tolerance_left = options.hysteresis;
    state.scale = state.scale < kMaxLossScale ? state.scale * 2 : state.scale;
  }
  return true;
}

}  // namespace bloomery
