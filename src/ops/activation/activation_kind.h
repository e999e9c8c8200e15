// The activations and their derivatives as plain functions, for CPU and device kernels alike.
//
// On the CPU the fp32 versions are branch-free arithmetic accurate to about one unit in the last
// place, so that loops over them vectorise without -ffast-math; fp64 uses the standard library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/error.h"
#include "ops/common/fast_math.h"

namespace bloomery {

enum class Activation : std::uint8_t { none, gelu_tanh, gelu_erf, silu, relu, squared_relu };

const char* name(Activation activation);

// How exact a result in fp32 must be: to about one unit in the last place, or, where it will be
// rounded to 16 bits, within 2^-16 of itself, and derivatives within 2^-16. Far below zero, where
// the gate would not be a normal number, both are zero.
enum class Accuracy : std::uint8_t { full, brief };
template <class Stored>
inline constexpr Accuracy kAccuracyFor = sizeof(Stored) == 2 ? Accuracy::brief : Accuracy::full;

namespace smooth {

// e^x for x <= 0: 0 below -87.3, NaN stays NaN.
[[gnu::always_inline]] constexpr float decay(float x) {
#ifdef __CUDA_ARCH__
  return ::expf(x);
#else
  return exp_up_to_88<float, std::int32_t>(x);
#endif
}
[[gnu::always_inline]] inline double decay(double x) { return std::exp(x); }

// 1 / x for 1 <= x <= 2, to about one unit in the last place: a parabola and two steps of Newton,
// since a vector division takes as long as all the rest of a logistic function.
[[gnu::always_inline]] constexpr float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  return 1.0f / x;
#else
  float y = (0.32323232f * x - 1.4545455f) * x + 2.1212122f;
  y = y * (1.0f - x * y) + y;
  return y * (1.0f - x * y) + y;
#endif
}
[[gnu::always_inline]] constexpr double reciprocal(double x) { return 1 / x; }

// -|x|
[[gnu::always_inline]] constexpr float minus_size(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) | 0x80000000u);
}
[[gnu::always_inline]] constexpr double minus_size(double x) { return x < 0 ? x : -x; }

// s = 1 / (1 + e^-x) and its derivative s (1 - s), both without cancellation.
template <class Real>
struct Logistic {
  Real value, slope;
};
template <class Real>
[[gnu::always_inline]] constexpr Logistic<Real> logistic(Real x) {
  const Real e = decay(minus_size(x));
  const Real larger = reciprocal(Real(1) + e);
  const Real smaller = e * larger;
  return {x < Real(0) ? smaller : larger, smaller * larger};
}

// The same of x ln 2, within 2^-17.
[[gnu::always_inline]] constexpr Logistic<float> brief_logistic(float x) {
#ifdef __CUDA_ARCH__
  const float e = ::exp2f(minus_size(x));
  const float larger = __fdividef(1.0f, 1.0f + e);
#else
  const float e = brief_exp2<float, std::int32_t>(minus_size(x));
  const float sum = 1.0f + e;
  float larger = -0.221837088f * sum + 1.33102253f;  // 1 / sum: a cubic and one step of Newton
  larger = larger * sum - 2.93934142f;
  larger = larger * sum + 2.82842288f;
  larger = larger * (1.0f - sum * larger) + larger;
#endif
  const float smaller = e * larger;
  return {x < 0.0f ? smaller : larger, smaller * larger};
}

template <Accuracy kAccuracy, class Real>
[[gnu::always_inline]] constexpr Logistic<Real> logistic_within(Real x) {
  if constexpr (kAccuracy == Accuracy::brief && std::is_same_v<Real, float>) {
    return brief_logistic(x * 1.44269504f);
  } else {
    return logistic(x);
  }
}

// Distribution function and density of the standard normal distribution. fp32: the upper tail at
// |x| is e^(-x^2/2) times a polynomial in 1 / (1 + |x|/4), which keeps full relative accuracy in
// both tails.
template <class Real>
struct Normal {
  Real distribution, density;
};
[[gnu::always_inline]] constexpr Normal<float> normal(float x) {
  const float size = x < 0.0f ? -x : x;
  const float bell = decay(-0.5f * x * x);
  const float t = 1.0f / (1.0f + 0.25f * size);
  float p = 0.01689269609692742f;
  p = p * t - 0.06453874636807377f;
  p = p * t + 0.05588318192428254f;
  p = p * t + 0.02260596259756119f;
  p = p * t + 0.017738813729350923f;
  p = p * t + 0.08384903125877374f;
  p = p * t + 0.07301356201393942f;
  p = p * t + 0.09528769677431416f;
  p = p * t + 0.09952147771700715f;
  p = p * t + 0.09974632856587243f;
  const float tail = p * t * bell;
  return {x < 0.0f ? tail : 1.0f - tail, bell * 0.3989422804014327f};
}
[[gnu::always_inline]] inline Normal<double> normal(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752440),
          0.39894228040143267794 * std::exp(-0.5 * x * x)};
}

// (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 is the logistic function of twice the argument of
// tanh; the slope is with respect to x.
template <Accuracy kAccuracy, class Real>
[[gnu::always_inline]] constexpr Logistic<Real> tanh_gate(Real x) {
  constexpr Real kTwiceRoot = Real(1.59576912160573071176);  // 2 sqrt(2/pi)
  constexpr Real kCubic = Real(0.044715), kOctaves = Real(1.44269504088896340736);
  const Real square = x * x;
  const Real rise = kTwiceRoot + Real(3) * kTwiceRoot * kCubic * square;
  if constexpr (kAccuracy == Accuracy::brief && std::is_same_v<Real, float>) {
    const auto s =
        brief_logistic(x * (kOctaves * kTwiceRoot + kOctaves * kTwiceRoot * kCubic * square));
    return {s.value, s.slope * rise};
  } else {
    const auto s = logistic(kTwiceRoot * x * (Real(1) + kCubic * square));
    return {s.value, s.slope * rise};
  }
}

}  // namespace smooth

// y = f(x).
template <Activation kActivation, Accuracy kAccuracy = Accuracy::full, class Real>
[[gnu::always_inline]] constexpr Real activate(Real x) {
  if constexpr (kActivation == Activation::gelu_tanh) {
    return x * smooth::tanh_gate<kAccuracy>(x).value;
  } else if constexpr (kActivation == Activation::gelu_erf) {
    return x * smooth::normal(x).distribution;
  } else if constexpr (kActivation == Activation::silu) {
    return x * smooth::logistic_within<kAccuracy>(x).value;
  } else if constexpr (kActivation == Activation::relu) {
    return x < Real(0) ? Real(0) : x;
  } else if constexpr (kActivation == Activation::squared_relu) {
    return x < Real(0) ? Real(0) : x * x;
  } else {
    return x;
  }
}

// dy/dx at x:
//   gelu_tanh     s + x s', s the gate
//   gelu_erf      Phi(x) + x phi(x)
//   silu          s + x s (1 - s), s the logistic function
//   relu          1 for x > 0, else 0
//   squared_relu  2 max(x, 0)
template <Activation kActivation, Accuracy kAccuracy = Accuracy::full, class Real>
[[gnu::always_inline]] constexpr Real activation_derivative(Real x) {
  if constexpr (kActivation == Activation::gelu_tanh) {
    const auto gate = smooth::tanh_gate<kAccuracy>(x);
    return gate.value + x * gate.slope;
  } else if constexpr (kActivation == Activation::gelu_erf) {
    const auto normal = smooth::normal(x);
    return normal.distribution + x * normal.density;
  } else if constexpr (kActivation == Activation::silu) {
    const auto gate = smooth::logistic_within<kAccuracy>(x);
    return gate.value + x * gate.slope;
  } else if constexpr (kActivation == Activation::relu) {
    return x > Real(0) ? Real(1) : Real(0);
  } else if constexpr (kActivation == Activation::squared_relu) {
    return x > Real(0) ? x + x : Real(0);
  } else {
    return Real(1);
  }
}

template <Activation kActivation>
struct ActivationTag {
  static constexpr Activation value = kActivation;
};

// Calls body(ActivationTag<A>{}), so that the choice is made once outside of the loop.
template <class Body>
decltype(auto) dispatch_activation(Activation activation, Body&& body) {
  switch (activation) {
    case Activation::none:
      return body(ActivationTag<Activation::none>{});
    case Activation::gelu_tanh:
      return body(ActivationTag<Activation::gelu_tanh>{});
    case Activation::gelu_erf:
      return body(ActivationTag<Activation::gelu_erf>{});
    case Activation::silu:
      return body(ActivationTag<Activation::silu>{});
    case Activation::relu:
      return body(ActivationTag<Activation::relu>{});
    case Activation::squared_relu:
      return body(ActivationTag<Activation::squared_relu>{});
  }
  throw Error(concat("unknown activation ", static_cast<int>(activation)));
}

}  // namespace bloomery
