// What follows from the options before training starts: pure functions of what the user said and
// of the vocabulary. The trainer builds from a Plan; --dry-run prints it.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "samples/curriculum/batches.h"
#include "train/plan/batch_size.h"
#include "train/plan/pretrain_options.h"
#include "train/plan/step_lengths.h"
#include "train/step/rank_options.h"

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

// The family whose models are tuned for such a task.
const Family& task_family(const TaskKind& task);
// What the model's family is fed.
const SampleKind& sample_kind(const PretrainOptions& options);
SampleOptions sample_options(const PretrainOptions& options);
SampleFields sample_fields(const PretrainOptions& options);

struct Plan {
  RankOptions rank;  // its model is completed; on a CPU until a run chooses its device
  std::int64_t padded_vocabulary = 0;
  ParameterCount parameters;

  std::int64_t micro_batch = 1, data_ranks = 1, seq_length = 1;
  BatchSize batch{1, {}};
  std::int64_t num_micro_batches(std::int64_t consumed_samples) const {
    return batch.at(consumed_samples) / (micro_batch * data_ranks);
  }

  StepLengths lengths;                          // of each step
  std::optional<CurriculumOptions> curriculum;  // that chooses the samples of training

  // What Megatron counts to, and prints: iterations of the asked-for samples.
  std::int64_t train_iterations = 0;
  // Where training ends: --train-tokens may end it earlier.
  std::int64_t last_iteration = 0;
  std::int64_t train_samples = 0, train_tokens = 0;  // of last_iteration
  std::optional<std::int64_t> most_tokens;           // --train-tokens
  // Whether a run that has taken so many steps and counted so many tokens is over. A run whose
  // options changed on the way has other tokens than last_iteration was found with.
  bool is_over(std::int64_t iteration, std::int64_t tokens) const {
    return iteration >= train_iterations || (most_tokens && tokens >= *most_tokens);
  }

  bool schedule_in_tokens = false;  // else in samples
  // Of a schedule in tokens: samples of a warm-up that is given in samples, during which the rate
  // rises with these; the schedule counts as many tokens as they have. 0: it is given in tokens.
  std::int64_t warmup_samples = 0;
  Schedule schedule;  // in those units
  // What step `iteration`, of so many samples behind `consumed` ones, advances it by.
  std::int64_t schedule_units(std::int64_t iteration, std::int64_t consumed,
                              std::int64_t samples) const;

  std::int64_t num_evaluations = 0;  // on validation data, during training
  // Samples asked of each split, in the order of Split: train, valid, test.
  std::array<std::int64_t, 3> requested_samples{};
};

// The options must be free of problems (read_pretrain.h).
Plan make_plan(const PretrainOptions& options, std::int64_t vocabulary);

std::int64_t global_batch_size(const PretrainOptions& options);
Layout layout(const PretrainOptions& options);
OffloadOptions offload_options(const OffloadFlags& flags, const SequenceChunkFlags& chunks);
std::size_t memory_limit(const OffloadFlags& flags);  // in bytes; 0: none
std::optional<Rampup> rampup(const BatchOptions& options);
StepLengths step_lengths(const PretrainOptions& options);

}  // namespace bloomery
