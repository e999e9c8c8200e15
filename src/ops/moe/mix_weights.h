// The weights of the two branches of a token, for CPU and device kernels alike.
#pragma once

#include "ops/activation/activation_kind.h"
#include "ops/moe/mix.h"

namespace bloomery::moe {
// Differs between the instruction-set levels, so it must not be shared between their object files.
namespace {

// slope: how the weight of b grows with what it is the logistic function of; that of a falls by as
// much in a softmax.
template <class Real>
struct MixWeights {
  Real a, b, slope;
};

// The softmax of two is the logistic function of their difference.
template <class Real>
constexpr MixWeights<Real> mix_weights(MixKind kind, Real first, Real second) {
  if (kind == MixKind::logistic) {
    const auto s = smooth::logistic(first);
    return {Real(1), s.value, s.slope};
  }
  const auto s = smooth::logistic(second - first);
  return {smooth::logistic(first - second).value, s.value, s.slope};
}

}  // namespace
}  // namespace bloomery::moe
