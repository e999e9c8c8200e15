// Lion (Chen et al., 2023): steps of one size by the sign of an average. With g = grad_factor *
// grad:
//   p = decay_factor p - step_size * sign(beta1 m + (1 - beta1) g)
//   m = beta2 m + (1 - beta2) g
#pragma once

#include "ops/optimizer/rule.h"

namespace bloomery {

struct Lion {
  double beta1 = 0.9, beta2 = 0.99;
  bool operator==(const Lion&) const = default;

  static constexpr const char* kName = "lion";
  static constexpr StateTensor kState[] = {{"exp_avg", "exp_avg", "momentum"}};

  static constexpr auto words() { return std::to_array<RuleWord<Lion>>({{"lion", {}}}); }
  static constexpr auto flags() {
    return std::to_array<RuleFlag<Lion>>(
        {{"lion-beta1", &Lion::beta1, "Lion: weight of the average beside the gradient in a step."},
         {"lion-beta2", &Lion::beta2, "Lion: decay of the average."}});
  }

  template <class Step>
  constexpr void set_scalars(UpdateScalars& update, double rate, double decay, Step) const {
    update.step_size = rate;
    update.decay_factor = 1.0 - rate * decay;
  }

  template <class Real>
  struct Element {
    Real beta1, rest1, beta2, rest2;

    constexpr explicit Element(const Lion& rule)
        : beta1(static_cast<Real>(rule.beta1)),
          rest1(static_cast<Real>(1.0 - rule.beta1)),
          beta2(static_cast<Real>(rule.beta2)),
          rest2(static_cast<Real>(1.0 - rule.beta2)) {}

    constexpr Real operator()(const ElementScalars<Real>& s, Real p, Real g, Real& m) const {
      const Real direction = beta1 * m + rest1 * g;
      const Real sign = static_cast<Real>(direction > 0) - static_cast<Real>(direction < 0);
      m = beta2 * m + rest2 * g;
      return s.decay_factor * p - s.step_size * sign;
    }
  };
};

}  // namespace bloomery
