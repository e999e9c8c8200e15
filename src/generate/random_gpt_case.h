// Small GPTs with random weights for the tests of generation.
#pragma once

#include "comm/mesh.h"
#include "models/model.h"

namespace bloomery {

struct RandomGpt {
  // Or this rank's part of one that the ranks of `world` divide.
  RandomGpt(const ModelOptions& options, DType dtype, const DeviceOptions& device_options,
            double scale = 0.3, std::unique_ptr<Communicator> world = make_self_communicator())
      : device(device_options),
        stream(device),
        mesh(make_mesh(std::move(world))),
        model(options, mesh, dtype) {
    for (Parameter* parameter : model.parameters()) {
      parameter->init = {Init::Kind::normal, scale};
      parameter->value = Tensor::empty(stream, dtype, parameter->local_shape);
      initialize(*parameter, 11, stream);
    }
  }

  Device device;
  Stream stream;
  Mesh mesh;
  Model model;

 private:
  static Mesh make_mesh(std::unique_ptr<Communicator> world) {
    const MeshDegrees degrees{.tensor = world->size()};
    return Mesh(degrees, std::move(world));
  }
};

inline ModelOptions learned_gpt() {
  ModelOptions o;
  o.num_layers = 2;
  o.hidden_size = 32;
  o.attention.num_heads = 4;
  o.vocabulary.size = 45;
  o.vocabulary.divisible_by = 16;
  o.positions.max_length = 40;
  return o;
}

// Llama's shape: rotary positions, grouped queries, gated, untied.
inline ModelOptions rotary_gpt() {
  ModelOptions o = learned_gpt();
  o.attention.num_heads = 6;
  o.attention.num_groups = 2;
  o.attention.head_dim = 16;
  o.norm.kind = NormKind::rms;
  o.mlp.kind = MlpKind::swiglu;
  o.bias = false;
  o.vocabulary.untied = true;
  o.positions.rotary = true;
  return o;
}

// A part of each head turns, pairs are neighbours, the residual stream is fp32 and branches off
// after the norm.
inline ModelOptions mixed_gpt() {
  ModelOptions o = learned_gpt();
  o.positions.rotary = true;
  o.positions.rotary_fraction = 0.5;
  o.positions.rotary_interleaved = true;
  o.attention.num_groups = 1;
  o.residual.after_norm = true;
  o.residual.fp32 = true;
  return o;
}

}  // namespace bloomery
