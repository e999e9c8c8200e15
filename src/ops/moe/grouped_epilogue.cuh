// What the kernels of grouped products share: their arguments, and activations by a number that is
// the same for all threads.
#pragma once

#include "device/warp.cuh"
#include "ops/activation/activation_kind.h"
#include "ops/moe/grouped_linear.h"

namespace bloomery {

// GroupedProduct and GroupedWeightGradient as device code reads them.
template <class T>
struct ProductOnDevice {
  explicit ProductOnDevice(const GroupedProduct& k)
      : a(k.a.as<T>()),
        b(k.b.as<T>()),
        bias(k.bias.as<T>()),
        derivative_at(k.derivative_at.as<T>()),
        d(k.d.as<T>()),
        before(k.before.as<T>()),
        tiles(k.groups.tiles.as<std::int32_t>()),
        rows(k.a.rows()),
        n(k.n),
        k(k.k),
        transpose_b(k.transpose_b),
        activation(k.activation),
        derivative(k.derivative) {}

  const T *a, *b, *bias, *derivative_at;
  T *d, *before;
  const std::int32_t* tiles;
  std::int64_t rows, n, k;
  bool transpose_b;
  Activation activation, derivative;
};
template <class T>
struct GradientOnDevice {
  explicit GradientOnDevice(const GroupedWeightGradient& k)
      : a(k.a.as<T>()),
        b(k.b.as<T>()),
        d(k.d.as<float>()),
        offsets(k.groups.offsets.as<std::int32_t>()),
        groups(static_cast<int>(k.groups.offsets.numel() - 1)),
        m(k.a.columns()),
        n(k.b.columns()),
        add(k.add) {}

  const T *a, *b;
  float* d;
  const std::int32_t* offsets;
  int groups;
  std::int64_t m, n;
  bool add;
};

template <class T>
__device__ __forceinline__ float activated(Activation activation, float x) {
  constexpr Accuracy kAccuracy = kAccuracyFor<T>;
  switch (activation) {
    case Activation::gelu_tanh:
      return activate<Activation::gelu_tanh, kAccuracy>(x);
    case Activation::gelu_erf:
      return activate<Activation::gelu_erf, kAccuracy>(x);
    case Activation::silu:
      return activate<Activation::silu, kAccuracy>(x);
    case Activation::relu:
      return activate<Activation::relu, kAccuracy>(x);
    case Activation::squared_relu:
      return activate<Activation::squared_relu, kAccuracy>(x);
    default:
      return x;
  }
}

template <class T>
__device__ __forceinline__ float derivative_of(Activation activation, float x) {
  constexpr Accuracy kAccuracy = kAccuracyFor<T>;
  switch (activation) {
    case Activation::gelu_tanh:
      return activation_derivative<Activation::gelu_tanh, kAccuracy>(x);
    case Activation::gelu_erf:
      return activation_derivative<Activation::gelu_erf, kAccuracy>(x);
    case Activation::silu:
      return activation_derivative<Activation::silu, kAccuracy>(x);
    case Activation::relu:
      return activation_derivative<Activation::relu, kAccuracy>(x);
    case Activation::squared_relu:
      return activation_derivative<Activation::squared_relu, kAccuracy>(x);
    default:
      return 1.0f;
  }
}

}  // namespace bloomery
