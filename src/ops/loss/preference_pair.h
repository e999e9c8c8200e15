// One pair of a preference loss, on any device.
#pragma once

#include <cmath>

#include "ops/loss/preference.h"

namespace bloomery {

template <class Real>
struct PairLoss {
  Real loss, slope;  // and the loss derived by h
};

// log(1 + exp(x)).
template <class Real>
constexpr Real softplus(Real x) {
  return (x > 0 ? x : Real(0)) + log1p(exp(x > 0 ? -x : x));
}

template <class Real>
constexpr Real sigmoid(Real x) {
  const Real small = exp(x > 0 ? -x : x);
  return (x > 0 ? Real(1) : small) / (1 + small);
}

template <class Real>
constexpr PairLoss<Real> pair_loss(const PreferenceOptions& o, Real h) {
  const Real beta = o.beta, s = o.label_smoothing, z = beta * h;
  switch (o.loss) {
    case PreferenceLoss::sigmoid:
      return {(1 - s) * softplus(-z) + s * softplus(z), beta * (sigmoid(z) - (1 - s))};
    case PreferenceLoss::robust:
      return {((1 - s) * softplus(-z) - s * softplus(z)) / (1 - 2 * s),
              beta * ((1 - 2 * s) * sigmoid(z) - (1 - s)) / (1 - 2 * s)};
    case PreferenceLoss::hinge:
      return {z < 1 ? 1 - z : Real(0), z < 1 ? -beta : Real(0)};
    case PreferenceLoss::ipo: {
      const Real distance = h - 1 / (2 * beta);
      return {distance * distance, 2 * distance};
    }
  }
  return {};
}

// Adds a pair of the arguments' sequences to `figures`, which are sums in double, and writes its
// two weights. `Sum` is their accumulation type.
template <class Sum>
constexpr void add_pair(const PreferenceOptions& options, const Sum* sums, const float* reference,
                        std::int64_t sequences, std::int64_t pair, double* figures, Sum* weights) {
  const std::int64_t chosen = 2 * pair, rejected = chosen + 1;
  const auto divisor = [&](std::int64_t s) {
    const double tokens = sums[sequences + s];
    return options.loss == PreferenceLoss::ipo && tokens > 0 ? tokens : 1.0;
  };
  const double of_chosen = divisor(chosen), of_rejected = divisor(rejected);
  const double logp_chosen = sums[chosen] / of_chosen, logp_rejected = sums[rejected] / of_rejected;
  const double gain_chosen = logp_chosen - reference[chosen] / of_chosen;
  const double gain_rejected = logp_rejected - reference[rejected] / of_rejected;
  const PairLoss<double> found = pair_loss<double>(options, gain_chosen - gain_rejected);
  // A log-probability is minus the sum of its tokens' losses.
  const double slope = found.slope * 2 / static_cast<double>(sequences);
  weights[chosen] = static_cast<Sum>(-slope / of_chosen);
  weights[rejected] = static_cast<Sum>(slope / of_rejected);
  figures[kPreferenceLoss] += found.loss;
  figures[kRewardChosen] += options.beta * gain_chosen;
  figures[kRewardRejected] += options.beta * gain_rejected;
  figures[kRewardAccuracy] += gain_chosen > gain_rejected ? 1 : 0;
  figures[kRewardMargin] += options.beta * (gain_chosen - gain_rejected);
  figures[kLogpsChosen] += logp_chosen;
  figures[kLogpsRejected] += logp_rejected;
}

}  // namespace bloomery
