// SGD with momentum, decay as a part of the gradient. With g = grad_factor * grad + l2 * p:
//   m = momentum m + g
//   p = p - step_size m
#pragma once

#include "ops/optimizer/rule.h"

namespace bloomery {

struct Momentum {
  double momentum = 0.9;
  bool operator==(const Momentum&) const = default;

  static constexpr const char* kName = "sgd";
  static constexpr StateTensor kState[] = {{"exp_avg", "momentum_buffer", "momentum"}};

  static constexpr auto words() { return std::to_array<RuleWord<Momentum>>({{"sgd", {}}}); }
  static constexpr auto flags() {
    return std::to_array<RuleFlag<Momentum>>(
        {{"sgd-momentum", &Momentum::momentum, "Momentum of SGD."}});
  }

  template <class Step>
  constexpr void set_scalars(UpdateScalars& update, double rate, double decay, Step) const {
    update.step_size = rate;
    update.l2 = decay;
  }

  template <class Real>
  struct Element {
    Real momentum;

    constexpr explicit Element(const Momentum& rule) : momentum(static_cast<Real>(rule.momentum)) {}

    constexpr Real operator()(const ElementScalars<Real>& s, Real p, Real g, Real& m) const {
      m = momentum * m + g;
      return s.decay_factor * p - s.step_size * m;
    }
  };
};

}  // namespace bloomery
