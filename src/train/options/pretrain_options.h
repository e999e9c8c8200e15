// What a user says to `bloomery pretrain`: plain values in the user's own terms, with Megatron's
// names and defaults. plan.h derives from them what the trainer builds and counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/layout.h"
#include "comm/transport.h"
#include "data/samples/sample_kind.h"
#include "models/family.h"
#include "ops/fp8/fp8_layers.h"
#include "optim/optimizer.h"
#include "tensor/dtype.h"
#include "tokenizer/load.h"
#include "zero/replica_options.h"

namespace bloomery {

class OptionTable;

struct RecomputeFlags {
  enum class Granularity { none, full, selective };
  enum class Method { none, uniform, block };
  Granularity granularity = Granularity::none;
  Method method = Method::none;
  std::int64_t num_layers = 1;
  bool checkpoint_activations = false;  // the old spelling: full, uniform
  std::int64_t checkpoint_num_layers = 1;
};

struct BatchOptions {
  std::int64_t micro = 0;  // required
  std::optional<std::int64_t> global, accumulation;
  std::vector<std::int64_t> rampup;  // empty, or start, increment, samples
};

// How many ranks there are and along which axes they divide the work; what the other axes leave are
// data-parallel.
struct ParallelOptions {
  int processes = 1;  // that were started together: what the launcher says, no flag
  int ranks_as_threads = 1;
  Transport transport = Transport::automatic;  // between processes
  std::int64_t timeout_minutes = 10;
  std::optional<double> timeout_seconds;  // counts instead
  int tensor = 1, pipeline = 1;
  int sequence = 1;  // of the context axis: parts of the same sequences
  bool sequence_parallel = false;
  std::optional<std::int64_t> layers_per_chunk;  // none: a stage is one chunk
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::optional<std::int64_t> zero_stage;
  ReplicaOptions replicas;

  double timeout() const {  // in seconds
    return timeout_seconds.value_or(60 * static_cast<double>(timeout_minutes));
  }
  int num_ranks() const { return processes * ranks_as_threads; }
  // That work on the same samples together.
  int model_ranks() const { return tensor * sequence * pipeline; }
  int data_ranks() const { return std::max(1, num_ranks() / model_ranks()); }
};

// How long to train; at least one, and not both iterations and samples.
struct LengthOptions {
  std::optional<std::int64_t> iterations, samples, tokens;
};

// How a run goes on beyond the end that it was started with.
enum class Extend {
  no,
  stretch,  // the schedule reaches to the new end
  hold,     // the checkpoint's schedule, then its lowest rate
};

struct RateOptions {
  std::optional<double> rate;  // required unless only evaluating
  double min_rate = 0;
  DecayStyle style = DecayStyle::linear;
  std::optional<std::int64_t> decay_iterations, decay_samples, decay_tokens;
  std::optional<double> warmup_fraction;
  std::int64_t warmup_iterations = 0, warmup_samples = 0;
  std::optional<std::int64_t> warmup_tokens;
  bool override_scheduler = false, use_checkpoint_scheduler = false;
  Extend extend = Extend::no;
};

struct UpdateOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum = 0.9;
  double clip = 1;
  double weight_decay = 0.01;
  std::optional<double> start_weight_decay, end_weight_decay;
  WeightDecayStyle weight_decay_style = WeightDecayStyle::constant;
};

struct Fp8Flags {
  enum class Format { none, e4m3, hybrid };
  Format format = Format::none;
  Fp8Recipe recipe = Fp8Recipe::delayed;
  bool weight_gradients = true;
  std::int64_t margin = 0, interval = 1, history = 1;
  Fp8Amax amax = Fp8Amax::most_recent;
};

struct PrecisionOptions {
  DType dtype = DType::fp32;
  Fp8Flags fp8;
  std::optional<double> loss_scale;  // none or 0: dynamic
  double initial_loss_scale = 4294967296.0, min_loss_scale = 1;
  std::optional<std::int64_t> initial_scale_power;  // DeepSpeed's way; instead of the former
  double window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;  // DeepSpeed's
  bool stop_at_min_scale = false;       // DeepSpeed's default
};

struct CheckpointFlags {
  std::string save, load;
  std::optional<std::int64_t> save_interval;
  bool no_save_optim = false, no_save_rng = false, no_load_optim = false, no_load_rng = false;
  bool finetune = false, exit_on_missing = false;
  bool use_checkpoint_args = false;  // the model is that of --load
  std::string load_tag;              // which checkpoint of --load; empty: the newest
  bool reset_iteration = false;      // weights and optimizer as stored, counting from 0
  std::int64_t keep_last = 0;        // 0: all
  std::int64_t keep_every = 0;       // 0: none beyond the last ones
  bool synchronous = false;          // write before the next step instead of beside it
  bool fork = false;                 // another run's steps in `save` move aside
};

struct EvaluationOptions {
  std::int64_t iterations = 100, interval = 1000;
  bool skip_train = false;
};

struct StopOptions {
  std::optional<std::int64_t> exit_interval, exit_minutes;
  std::string kill_switch_file;
  bool on_nan = false;  // else such a step is skipped and counted
  // Steps in a row that changed nothing until a warning, and until the end; 0: never.
  std::int64_t skipped_until_warning = 5, skipped_until_stop = 100;
  std::optional<std::int64_t> check_replicas;  // steps between comparisons
};

struct LoggingOptions {
  enum class Format { deepspeed, nvidia };
  Format format = Format::deepspeed;
  std::int64_t interval = 100;
  bool throughput = false, params_norm = false, num_zeros_in_grad = false;
  std::int64_t timing_level = 0;
  std::string timing_option = "minmax";
  std::string tensorboard_dir;
  std::int64_t tensorboard_interval = 1;
  bool timers_to_tensorboard = false, batch_size_to_tensorboard = false;
  bool validation_ppl_to_tensorboard = false, optimizer_states_to_tensorboard = false;
  bool memory_to_tensorboard = false, world_size_to_tensorboard = false;
  bool learning_rate_to_tensorboard = true, loss_scale_to_tensorboard = true;
  std::optional<double> loss_floor;         // drawn in report.html
  std::vector<std::string> report_samples;  // prompts whose continuations it shows
  std::string profile = "none";             // or pt, pt-full
  std::vector<std::int64_t> profile_steps = {2, 3};
  std::int64_t straggler_percent = 10;  // 0: no warnings
};

struct PretrainOptions {
  std::string model_size;  // a name of model_sizes.h; fills what is not given
  ModelOptions model;      // the vocabulary is the tokenizer's
  RecomputeFlags recompute;
  BatchOptions batch;
  ParallelOptions parallel;
  LengthOptions length;
  RateOptions rate;
  UpdateOptions update;
  PrecisionOptions precision;
  DataOptions data;
  SentenceSampleOptions sentences;  // of families that are fed masked samples
  TokenizerOptions tokenizer;
  CheckpointFlags checkpoint;
  EvaluationOptions evaluation;
  StopOptions stop;
  LoggingOptions logging;
  bool deepspeed = false;
  std::string deepspeed_config;
  std::int64_t seed = 1234;
  bool allow_nondeterministic = false;
  bool dry_run = false, dry_run_json = false;
};

// The options before any was read: the defaults of the family that the arguments name, which also
// decides what other options there are.
PretrainOptions pretrain_defaults(const std::vector<std::string>& arguments);

// Every option of Megatron-DeepSpeed's command line for GPT, with old and new spellings, and every
// key of its DeepSpeed configurations: what works, what has no effect, what is refused.
void describe(OptionTable& table, PretrainOptions& options);

// Parts of it, each in a file of its own.
void describe_network(OptionTable& table, PretrainOptions& options);
void describe_parallel(OptionTable& table, ParallelOptions& options);
void add_transport(OptionTable& table, Transport& transport);
void describe_fp8(OptionTable& table, Fp8Flags& options);
void describe_training(OptionTable& table, PretrainOptions& options);
void describe_output(OptionTable& table, PretrainOptions& options);
void describe_samples(OptionTable& table, PretrainOptions& options);
void describe_without_effect(OptionTable& table);
void describe_refused(OptionTable& table);
void describe_deepspeed_keys(OptionTable& table);

}  // namespace bloomery
