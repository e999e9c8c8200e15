// What happens at the end of a step, decided on the device from the squared gradient norm: skip on
// overflow or clip, loss scale, learning rate, weight decay, bias corrections. No host round trip.
#pragma once

#include <cmath>

#include "device/launch.h"
#include "ops/optimizer/update.h"
#include "optim/loss_scale.h"
#include "optim/schedule.h"
#include "tensor/tensor.h"

namespace bloomery {

enum class OptimizerKind : std::uint8_t {
  adamw,  // decoupled decay
  adam,   // decay as a part of the gradient
  sgd,    // with momentum; decay as a part of the gradient
};

// Fixed for the run; an argument of the kernel.
struct StepRules {
  OptimizerKind kind = OptimizerKind::adamw;
  double beta1 = 0.9, beta2 = 0.999;
  double clip = 1.0;  // of the global norm; 0: never
  Schedule schedule;
  LossScaleOptions loss_scale;
};

// Lives on the device. The first part continues from step to step and is what a checkpoint keeps;
// the second describes the last step.
struct StepState {
  std::int64_t num_steps = 0;    // updates applied
  std::int64_t num_samples = 0;  // position in the schedule
  std::int64_t num_skipped = 0;  // steps not applied because of overflow
  LossScale loss_scale;          // for the next step

  double grad_norm = 0;           // of the true gradient, before clipping; not finite on overflow
  double clip_coefficient = 1;    // at most 1
  double learning_rate = 0;       // used in this step
  double next_learning_rate = 0;  // what Megatron logs after it
  double weight_decay = 0;
  bool scale_exhausted = false;  // overflow at the smallest loss scale, no tolerance left
  UpdateScalars update;
};

constexpr StepState initial_step_state(const StepRules& rules) {
  StepState state;
  state.loss_scale = initial_loss_scale(rules.loss_scale);
  return state;
}

// The scalars of update number `step` (from 1) at the rate and decay of the state.
template <class Step>
constexpr UpdateScalars update_scalars(const StepRules& rules, const StepState& state, Step step,
                                       double unscale) {
  UpdateScalars update;
  update.grad_factor = state.clip_coefficient * unscale;
  update.step_size = state.learning_rate;
  if (rules.kind != OptimizerKind::sgd) {
    const auto t = static_cast<double>(step);
    update.step_size = state.learning_rate / (1.0 - pow(rules.beta1, t));
    update.inverse_sqrt_bias2 = 1.0 / sqrt(1.0 - pow(rules.beta2, t));
  }
  if (rules.kind == OptimizerKind::adamw) {
    update.decay_factor = 1.0 - state.learning_rate * state.weight_decay;
  } else {
    update.l2 = state.weight_decay;
  }
  return update;
}

// Moves the state over one step whose scaled gradient has this squared norm. `samples` were
// trained on; the schedule does not advance when the step is skipped.
template <class Samples>
constexpr void plan_step(const StepRules& rules, StepState& state, double squared_norm,
                         Samples samples) {
  constexpr double kLargest = 1.7976931348623157e308;
  const bool overflow = !(squared_norm <= kLargest);  // infinite or NaN
  const double unscale = 1.0 / state.loss_scale.scale;
  state.grad_norm = sqrt(squared_norm) * unscale;
  const double coefficient = rules.clip / (state.grad_norm + 1e-6);
  state.clip_coefficient = rules.clip > 0 && coefficient < 1 ? coefficient : 1.0;
  state.learning_rate = learning_rate(rules.schedule, state.num_samples);
  state.weight_decay = weight_decay(rules.schedule, state.num_samples);
  if (overflow) {
    state.num_skipped += 1;
    state.update = UpdateScalars{};
    state.update.skip = 1;
  } else {
    state.num_steps += 1;
    state.num_samples += samples;
    state.update = update_scalars(rules, state, state.num_steps, unscale);
  }
  state.next_learning_rate = learning_rate(rules.schedule, state.num_samples);
  state.scale_exhausted = !update_loss_scale(rules.loss_scale, state.loss_scale, overflow);
}

// plan_step on the device, by one thread.
struct StepPlan {
  StepRules rules;
  ConstView squared_norm;  // fp64 [1], of the whole gradient times the loss scale
  std::int64_t samples = 0;
  StepState* state = nullptr;  // device memory
  View loss_scale;             // fp32 [1]: receives the scale of the next step
};
void run_on_host(const StepPlan& k);
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const StepPlan& k) {
  run_on_host(k);
}
void run(OnCuda, Stream&, const StepPlan&);

}  // namespace bloomery
