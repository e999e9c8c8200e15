// An activation that the launch chooses: once for each result the choice costs nothing beside a
// sum.
#pragma once

#include "ops/activation/activation_kind.h"

namespace bloomery {

__device__ __forceinline__ float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::gelu_tanh:
      return activate<Activation::gelu_tanh>(x);
    case Activation::gelu_erf:
      return activate<Activation::gelu_erf>(x);
    case Activation::silu:
      return activate<Activation::silu>(x);
    case Activation::relu:
      return activate<Activation::relu>(x);
    case Activation::squared_relu:
      return activate<Activation::squared_relu>(x);
    default:
      return x;
  }
}

}  // namespace bloomery
