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

// Fixed for the run; an argument of the kernel.
struct StepRules {
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

// Moves the state over one step whose scaled gradient has this squared norm. `samples` were
// trained on; the schedule does not advance when the step is skipped.
template <class Rule, class Samples>
constexpr void plan_step(const Rule& rule, const StepRules& rules, StepState& state,
                         double squared_norm, Samples samples) {
  constexpr double kLargest = 1.7976931348623157e308;
  const bool overflow = !(squared_norm <= kLargest);  // infinite or NaN
  const double unscale = 1.0 / state.loss_scale.scale;
  state.grad_norm = sqrt(squared_norm) * unscale;
  const double coefficient = rules.clip / (state.grad_norm + 1e-6);
  state.clip_coefficient = rules.clip > 0 && coefficient < 1 ? coefficient : 1.0;
  state.learning_rate = learning_rate(rules.schedule, state.num_samples);
  state.weight_decay = weight_decay(rules.schedule, state.num_samples);
  state.update = UpdateScalars{};
  if (overflow) {
    state.num_skipped += 1;
    state.update.skip = 1;
  } else {
    state.num_steps += 1;
    state.num_samples += samples;
    state.update.grad_factor = state.clip_coefficient * unscale;
    rule.set_scalars(state.update, state.learning_rate, state.weight_decay, state.num_steps);
  }
  state.next_learning_rate = learning_rate(rules.schedule, state.num_samples);
  state.scale_exhausted = !update_loss_scale(rules.loss_scale, state.loss_scale, overflow);
}

// plan_step on the device, by one thread.
struct StepPlan {
  OptimizerRule rule;
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
