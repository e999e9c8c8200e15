// What an optimizer declares. A rule is a struct of its numbers in a file of rules/, listed in
// rules.h; flags, memory, ZeRO's shards, offloading, checkpoints and conversion follow from it:
//
//   static constexpr const char* kName        in profiles
//   static constexpr StateTensor kState[]     what it keeps of each element beside the weight
//   static constexpr auto words()             of --optimizer, each with the rule that it chooses
//   static constexpr auto flags()             that set its numbers
//   set_scalars(update, rate, decay, step)    once per step, on the device, by one thread
//   template <class Real> struct Element      the update of one element, on CPU and GPU
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bloomery {

// A tensor of an optimizer's state. It has an element for each weight, the dtype of the master
// weights, and starts at zero.
struct StateTensor {
  const char* name;         // in our checkpoints: PARAMETER/name
  const char* foreign;      // in files of PyTorch, Megatron and DeepSpeed
  const char* statistic;    // in logs of its norms: optimizer/statistic_l2
  bool is_squared = false;  // a mean of squares: norms of its square root are logged too
};
inline constexpr std::size_t kMaxStateTensors = 2;  // of the rules there are

template <class Rule>
struct RuleWord {
  const char* word;
  Rule rule;
};

enum class NumberRange { fraction, positive };
constexpr bool contains(NumberRange range, double number) {
  return range == NumberRange::positive ? number > 0 : 0 <= number && number < 1;
}
constexpr const char* text(NumberRange range) {
  return range == NumberRange::positive ? "above 0" : "at least 0 and below 1";
}
template <class Rule>
struct RuleFlag {
  using Number = double Rule::*;
  const char* name;
  Number number;
  const char* help;
  NumberRange range = NumberRange::fraction;
};

// Decided on the device for each step (optim/step_plan.h).
struct UpdateScalars {
  double grad_factor = 1;         // undoes the loss scale and clips
  double step_size = 0;           // learning rate; Adam: / (1 - beta1^t)
  double inverse_sqrt_bias2 = 1;  // Adam: 1 / sqrt(1 - beta2^t)
  double decay_factor = 1;        // 1 - learning rate * weight decay; weights are multiplied by it
  double l2 = 0;                  // weight decay as a part of the gradient
  std::int64_t skip = 0;          // nonzero: change nothing
};

// The same for elements of a unit, that decay or not, in the dtype of the weights.
template <class Real>
struct ElementScalars {
  Real grad_factor, step_size, inverse_sqrt_bias2, decay_factor, l2;

  constexpr ElementScalars(const UpdateScalars& from, bool decays)
      : grad_factor(static_cast<Real>(from.grad_factor)),
        step_size(static_cast<Real>(from.step_size)),
        inverse_sqrt_bias2(static_cast<Real>(from.inverse_sqrt_bias2)),
        decay_factor(static_cast<Real>(decays ? from.decay_factor : 1.0)),
        l2(static_cast<Real>(decays ? from.l2 : 0.0)) {}
};

}  // namespace bloomery
