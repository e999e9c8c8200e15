// Adam with bias correction. With g = grad_factor * grad + l2 * p:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   p = decay_factor p - step_size * m / (sqrt(v) * inverse_sqrt_bias2 + epsilon)
// AdamW has l2 = 0, Adam with decay in the gradient has decay_factor = 1.
#pragma once

#include <cmath>

#include "ops/optimizer/rule.h"

namespace bloomery {

struct Adam {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = true;  // AdamW
  bool operator==(const Adam&) const = default;

  static constexpr const char* kName = "adam";
  static constexpr StateTensor kState[] = {
      {"exp_avg", "exp_avg", "momentum"},
      {"exp_avg_sq", "exp_avg_sq", "variance", true},
  };

  static constexpr auto words() {
    return std::to_array<RuleWord<Adam>>(
        {{"adam", {}}, {"adamw", {}}, {"adam-l2", {.decoupled = false}}});
  }
  static constexpr auto flags() {
    return std::to_array<RuleFlag<Adam>>(
        {{"adam-beta1", &Adam::beta1, "Beta1 of Adam."},
         {"adam-beta2", &Adam::beta2, "Beta2 of Adam."},
         {"adam-eps", &Adam::epsilon, "Epsilon of Adam.", NumberRange::positive}});
  }

  template <class Step>
  constexpr void set_scalars(UpdateScalars& update, double rate, double decay, Step step) const {
    const auto t = static_cast<double>(step);
    update.step_size = rate / (1.0 - pow(beta1, t));
    update.inverse_sqrt_bias2 = 1.0 / sqrt(1.0 - pow(beta2, t));
    if (decoupled) {
      update.decay_factor = 1.0 - rate * decay;
    } else {
      update.l2 = decay;
    }
  }

  template <class Real>
  struct Element {
    Real beta1, rest1, beta2, rest2, epsilon;

    constexpr explicit Element(const Adam& rule)
        : beta1(static_cast<Real>(rule.beta1)),
          rest1(static_cast<Real>(1.0 - rule.beta1)),
          beta2(static_cast<Real>(rule.beta2)),
          rest2(static_cast<Real>(1.0 - rule.beta2)),
          epsilon(static_cast<Real>(rule.epsilon)) {}

    constexpr Real operator()(const ElementScalars<Real>& s, Real p, Real g, Real& m,
                              Real& v) const {
      m = beta1 * m + rest1 * g;
      v = beta2 * v + rest2 * g * g;
      const Real denominator = std::sqrt(v) * s.inverse_sqrt_bias2 + epsilon;
      return s.decay_factor * p - s.step_size * (m / denominator);
    }
  };
};

}  // namespace bloomery
