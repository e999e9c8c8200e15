// The activations and their derivatives as plain functions, for CPU and device kernels alike.
#pragma once

#include <cstdint>

namespace bloomery {

enum class Activation : std::uint8_t { none, gelu_tanh, gelu_erf, silu, relu, squared_relu };

const char* name(Activation activation);

}  // namespace bloomery
