// What the layers of a transformer are made from: plain values, owned by the model's options.
#pragma once

#include <cstdint>

#include "autograd/parameter.h"
#include "ops/activation/activation_kind.h"
#include "ops/norm/norm.h"
#include "ops/rotary/rotary.h"

namespace bloomery {

enum class PositionKind : std::uint8_t { learned, rotary, none };

struct TransformerOptions {
  std::int64_t hidden = 768;
  std::int64_t num_heads = 12;
  std::int64_t num_groups = 12;  // key/value heads
  std::int64_t head_dim = 64;
  std::int64_t ffn = 3072;
  Activation activation = Activation::gelu_tanh;
  bool gated = false;  // the MLP's first product makes a gate and a value
  bool bias = true;    // of the linear layers
  NormOptions norm;
  PositionKind positions = PositionKind::learned;
  std::int64_t rotary_dim = 0;  // channels of a head that are rotated
  double rotary_base = 10000;
  bool rotary_interleaved = false;
  bool causal = true;
  float attention_dropout = 0, hidden_dropout = 0;
  Init weight_init, output_init;  // output_init: of the two products that end a branch
  bool xavier = false;            // instead: uniform by fan-in and fan-out of each weight
};

// The initial distribution of a weight with the given global fans.
Init weight_init(const TransformerOptions& options, const Init& given, std::int64_t fan_in,
                 std::int64_t fan_out);

}  // namespace bloomery
