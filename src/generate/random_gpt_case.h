// Small GPTs with random weights for the tests of generation.
#pragma once

#include "comm/mesh.h"
#include "models/gpt.h"

namespace bloomery {

struct RandomGpt {
  RandomGpt(const GptOptions& options, DType dtype, const DeviceOptions& device_options,
            double scale = 0.3)
      : device(device_options), stream(device), model(options, mesh, dtype) {
    for (Parameter* parameter : model.parameters()) {
      parameter->init = {Init::Kind::normal, scale};
      parameter->value = Tensor::empty(stream, dtype, parameter->local_shape);
      initialize(*parameter, 11, stream);
    }
  }

  Device device;
  Stream stream;
  Mesh mesh = Mesh::single();
  Gpt model;
};

inline GptOptions learned_gpt() {
  GptOptions o;
  o.num_layers = 2;
  o.hidden_size = 32;
  o.num_heads = 4;
  o.vocabulary = 45;
  o.make_vocabulary_divisible_by = 16;
  o.max_positions = 40;
  return o;
}

// Llama's shape: rotary positions, grouped queries, gated, untied.
inline GptOptions rotary_gpt() {
  GptOptions o = learned_gpt();
  o.num_heads = 6;
  o.num_key_value_heads = 2;
  o.head_dim = 16;
  o.norm.kind = NormKind::rms;
  o.activation = Activation::silu;
  o.gated = true;
  o.bias = false;
  o.tied = false;
  o.positions = PositionKind::rotary;
  return o;
}

// A part of each head turns, pairs are neighbours, the residual stream is fp32 and branches off
// after the norm.
inline GptOptions mixed_gpt() {
  GptOptions o = learned_gpt();
  o.positions = PositionKind::rotary;
  o.rotary_fraction = 0.5;
  o.rotary_interleaved = true;
  o.num_key_value_heads = 1;
  o.post_norm_residual = true;
  o.fp32_residual = true;
  return o;
}

}  // namespace bloomery
