// What a router computes for one token, on the CPU and in device code alike.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/moe/router_rule.h"

namespace bloomery::moe {
// Differs between the instruction-set levels, so it must not be shared between their object files.
namespace {

template <class Real>
constexpr Real exponential(Real x) {
#ifdef __CUDA_ARCH__
  return ::expf(static_cast<float>(x));
#else
  return std::exp(x);
#endif
}
template <class Real>
constexpr Real logarithm(Real x) {
#ifdef __CUDA_ARCH__
  return ::logf(static_cast<float>(x));
#else
  return std::log(x);
#endif
}

// The softmax of a token's logits, element by element.
template <class Real>
struct Softmax {
  const Real* logits;
  int experts;
  Real highest, sum;

  constexpr Softmax(const Real* from, int count)
      : logits(from), experts(count), highest(from[0]), sum(0) {
    for (int e = 1; e < experts; ++e) {
      highest = logits[e] > highest ? logits[e] : highest;
    }
    for (int e = 0; e < experts; ++e) {
      sum += exponential(logits[e] - highest);
    }
  }
  constexpr Real operator[](int e) const { return exponential(logits[e] - highest) / sum; }
  constexpr Real logsumexp() const { return highest + logarithm(sum); }
};

constexpr bool contains(const std::int32_t* chosen, int count, int expert) {
  for (int j = 0; j < count; ++j) {
    if (chosen[j] == expert) {
      return true;
    }
  }
  return false;
}

// The token's experts, best first; of equals the one with the lower number.
template <class Real>
constexpr void choose(const RouterRule& rule, const Real* logits, const float* draws, int experts,
                      std::int32_t* chosen) {
  for (int j = 0; j < rule.topk; ++j) {
    const bool noisy = (rule.sampling == Sampling::first && j == 0) ||
                       (rule.sampling == Sampling::second && j == 1);
    int best = -1;
    Real top = 0;
    for (int e = 0; e < experts; ++e) {
      if (contains(chosen, j, e)) {
        continue;
      }
      const Real value = noisy ? logits[e] + static_cast<Real>(draws[e]) : logits[e];
      if (best < 0 || value > top) {
        best = e;
        top = value;
      }
    }
    chosen[j] = best;
  }
}

// What the gates of a token are divided by.
template <class Real>
constexpr Real gate_sum(const std::int32_t* experts, const Real* scores, int topk) {
  Real sum = 0;
  for (int j = 0; j < topk; ++j) {
    sum += experts[j] >= 0 ? scores[j] : Real(0);
  }
  constexpr Real kLeast = Real(std::numeric_limits<float>::epsilon());
  return sum > kLeast ? sum : kLeast;
}

// Larger for who goes first; no two pairs (token, choice) of an expert have the same.
constexpr std::uint64_t priority_key(Priority priority, float number, int choice,
                                     std::int64_t place, std::int64_t tokens) {
  const auto later = static_cast<std::uint64_t>(choice * tokens + place);
  const std::uint64_t earlier = 0xFFFFFFFFu - later;
  return priority == Priority::position
             ? earlier
             : std::uint64_t{std::bit_cast<std::uint32_t>(number)} << 32 | earlier;
}

// Coefficients of the losses, multiplied by what the gradient of the loss is.
template <class Real>
struct LossGradient {
  const Real* load;  // [experts]
  Real balance, z;   // balance: coefficient * experts / tokens / choices counted; z: 2 c / tokens
};

// dL/dlogits of a token, from dL/dgates.
template <class Real, class Write>
constexpr void token_gradient(const RouterRule& rule, const Real* logits, int experts,
                              const std::int32_t* chosen, const Real* grad_gates,
                              const LossGradient<Real>& losses, const Write& write) {
  const Softmax<Real> p(logits, experts);
  Real through[kMostChoices] = {};  // dL/dp of the chosen ones
  if (grad_gates != nullptr) {
    Real scores[kMostChoices] = {}, sum = 1, mean = 0;
    for (int j = 0; j < rule.topk; ++j) {
      scores[j] = chosen[j] >= 0 ? p[chosen[j]] : Real(0);
    }
    if (rule.renormalise) {
      sum = gate_sum(chosen, scores, rule.topk);
      for (int j = 0; j < rule.topk; ++j) {
        mean += scores[j] / sum * grad_gates[j];
      }
    }
    for (int j = 0; j < rule.topk; ++j) {
      through[j] = chosen[j] >= 0 ? (grad_gates[j] - mean) / sum : Real(0);
    }
  }
  const auto grad_of = [&](int e) {
    Real grad = losses.balance * losses.load[e];
    for (int j = 0; j < rule.topk; ++j) {
      grad += chosen[j] == e ? through[j] : Real(0);
    }
    return grad;
  };
  Real inner = 0;
  for (int e = 0; e < experts; ++e) {
    inner += grad_of(e) * p[e];
  }
  const Real z = losses.z == Real(0) ? Real(0) : losses.z * p.logsumexp();
  for (int e = 0; e < experts; ++e) {
    write(e, p[e] * (grad_of(e) - inner + z));
  }
}

}  // namespace
}  // namespace bloomery::moe
