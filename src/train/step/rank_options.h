// What a rank is built from: the model, and one options struct for each feature of its training.
#pragma once

#include <optional>
#include <vector>

#include "nn/layer_dropping.h"
#include "ops/fp8/fp8_layers.h"
#include "ops/loss/preference.h"
#include "optim/optimizer.h"
#include "parallel/fake_quant_layers.h"
#include "tensor/quantized.h"
#include "train/step/graph_choice.h"
#include "train/step/offload_options.h"
#include "train/step/teacher_options.h"
#include "zero/replica_options.h"

namespace bloomery {

struct RankOptions {
  ModelOptions model;
  RecomputeOptions recompute;
  OptimizerOptions optimizer;
  DType dtype = DType::fp32;
  std::optional<Fp8Options> fp8;  // of the linear layers in blocks; with bf16 alone
  // Of the frozen weights of linear layers in blocks; none: values.
  QuantizedFormat quantized_base = QuantizedFormat::none;
  std::optional<TeacherOptions> teacher;        // that the model learns from besides the labels
  std::optional<PreferenceOptions> preference;  // batches are pairs, and this is their loss
  std::vector<int> token_dropping_layers;       // of random-LTD
  std::optional<LayerDropOptions> layer_drop;
  GridsOfWeights grids;             // of linear layers in blocks that compute with few bits
  std::int64_t sequence_chunk = 0;  // tokens that layers compute at once; 0: all
  DeviceOptions device;
  std::uint64_t seed = 1234;
  // Initial values may be made while the constructor's caller does other things: nothing reads or
  // writes weights before await_initial_values().
  bool initialize_beside = false;
  bool training = true;  // dropout is active
  GraphChoice graphs = GraphChoice::automatic;
  Layout layout;
  ReplicaOptions replicas;
  OffloadOptions offload;
};

}  // namespace bloomery
