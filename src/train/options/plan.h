// What follows from the options before training starts: pure functions of what the user said and
// of the vocabulary. The trainer builds from a Plan; --dry-run prints it.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "comm/layout.h"
#include "train/options/batch_size.h"
#include "train/options/pretrain_options.h"

namespace bloomery {

// The model that the flags describe, for a tokenizer of so many tokens.
ModelOptions model_options(const PretrainOptions& options, std::int64_t vocabulary);
RecomputeOptions recompute_options(const RecomputeFlags& flags, std::int64_t num_layers);
LossScaleOptions loss_scale_options(const PrecisionOptions& options);
std::optional<Fp8Options> fp8_options(const Fp8Flags& flags);  // none: nothing is in 8 bits

// Of the whole model; padding of the vocabulary is not counted.
struct ParameterCount {
  std::int64_t per_layer = 0, total = 0;
};
ParameterCount count_parameters(const ModelOptions& options);

// What the model's family is fed.
const SampleKind& sample_kind(const PretrainOptions& options);
SampleOptions sample_options(const PretrainOptions& options);

struct Plan {
  ModelOptions model;  // completed
  RecomputeOptions recompute;
  DType dtype = DType::fp32;
  std::optional<Fp8Options> fp8;
  OptimizerOptions optimizer;
  std::int64_t padded_vocabulary = 0;
  ParameterCount parameters;

  Layout layout;
  ReplicaOptions replicas;
  std::int64_t micro_batch = 1, data_ranks = 1, seq_length = 1;
  BatchSize batch{1, {}};
  std::int64_t num_micro_batches(std::int64_t consumed_samples) const {
    return batch.at(consumed_samples) / (micro_batch * data_ranks);
  }

  // What Megatron counts to, and prints: iterations of the asked-for samples.
  std::int64_t train_iterations = 0;
  // Where training ends: --train-tokens may end it earlier.
  std::int64_t last_iteration = 0;
  std::int64_t train_samples = 0, train_tokens = 0;  // of last_iteration

  // Optimizer::step advances the schedule by this many per sample: 1, or the sequence length when
  // the schedule counts tokens.
  std::int64_t schedule_units_per_sample = 1;
  Schedule schedule;  // in those units

  std::int64_t num_evaluations = 0;  // on validation data, during training
  // Samples asked of each split, in the order of Split: train, valid, test.
  std::array<std::int64_t, 3> requested_samples{};
};

// The options must be free of problems (read_pretrain.h).
Plan make_plan(const PretrainOptions& options, std::int64_t vocabulary);

std::int64_t global_batch_size(const PretrainOptions& options);
Layout layout(const PretrainOptions& options);
std::optional<Rampup> rampup(const BatchOptions& options);

}  // namespace bloomery
