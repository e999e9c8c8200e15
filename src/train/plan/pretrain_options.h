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
#include "models/family.h"
#include "ops/fp8/fp8_layers.h"
#include "ops/loss/preference.h"
#include "optim/optimizer.h"
#include "optim/optimizer_choice.h"
#include "samples/curriculum/difficulty.h"
#include "samples/instruct/instruct_options.h"
#include "samples/sample_kind.h"
#include "samples/tasks/task_options.h"
#include "tensor/dtype.h"
#include "tensor/quantized.h"
#include "tokenizer/load.h"
#include "train/step/graph_choice.h"
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
// Layers that compute long sequences piece by piece (parallel/sequence_chunks.h).
struct SequenceChunkFlags {
  bool enabled = false;
  std::int64_t length = 65536;  // tokens of a whole sequence
  bool offload = false;         // keys and values wait on the host

  std::int64_t tokens() const { return enabled ? length : 0; }  // 0: sequences are not divided
};

struct ParallelOptions {
  int processes = 1;  // that were started together: what the launcher says, no flag
  int ranks_as_threads = 1;
  Transport transport = Transport::automatic;  // between processes
  std::int64_t timeout_minutes = 10;
  std::optional<double> timeout_seconds;  // counts instead
  int tensor = 1, pipeline = 1;
  int sequence = 1, ring = 1;  // of the context axis: parts of the same sequences
  int expert = 1;              // that divide the experts
  bool sequence_parallel = false;
  SequenceChunkFlags chunks;
  std::optional<std::int64_t> layers_per_chunk;  // none: a stage is one chunk
  int decoder_stage = 0;                         // Layout::decoder_stage
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::optional<std::int64_t> zero_stage;
  ReplicaOptions replicas;

  double timeout() const {  // in seconds
    return timeout_seconds.value_or(60 * static_cast<double>(timeout_minutes));
  }
  int num_ranks() const { return processes * ranks_as_threads; }
  // That work on the same samples together.
  int context() const { return sequence * ring; }
  int model_ranks() const { return tensor * context() * pipeline; }
  int data_ranks() const { return std::max(1, num_ranks() / model_ranks()); }
};

// What of a rank's state lies beside its device.
struct OffloadFlags {
  enum class Device { none, cpu, nvme };
  bool cpu_optimizer = false;
  Device optimizer = Device::none;
  double ratio = 1;
  Device parameters = Device::none;
  std::string folder;  // of nvme
  std::int64_t block_bytes = 1 << 20, queue_depth = 16, threads = 2;
  bool activations = false, divide_inputs = false;
  std::optional<double> memory_limit_gib;
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
  OptimizerChoice optimizer;
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
  QuantizedFormat quantized_base = QuantizedFormat::none;  // of frozen weights
  std::optional<double> loss_scale;                        // none or 0: dynamic
  double initial_loss_scale = 4294967296.0, min_loss_scale = 1;
  std::optional<std::int64_t> initial_scale_power;  // DeepSpeed's way; instead of the former
  double window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;  // DeepSpeed's
  bool stop_at_min_scale = false;       // DeepSpeed's default
};

struct CheckpointFlags {
  std::string save, load;
  std::string start;       // a model to start from: of another family, or for a task; empty: none
  std::string pretrained;  // of --pretrained-checkpoint: what `start` becomes
  std::string adapter;     // of PEFT's, that the adapter starts as; empty: none
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

// Sequences that grow during training: DeepSpeed's first generation of curricula.
struct CurriculumFlags {
  bool enabled = false;
  std::string type = "seqlen";
  DifficultySchedule schedule;  // of the length
};

// DeepSpeed's second generation of curricula: samples are chosen by how difficult they are.
struct SamplingFlags {
  bool asked = false;  // --data-efficiency-curriculum-learning
  bool data_efficiency = false, sampling = false, curriculum = false;  // the JSON's switches
  std::int64_t seed = 1234;                                            // of the whole section
  std::string cluster_path;
  std::string metrics;  // JSON, samples/curriculum/batches.h

  bool enabled() const { return asked && data_efficiency && sampling && curriculum; }
};

// Random layerwise token dropping.
struct RandomLtdFlags {
  bool asked = false;                             // --random-ltd
  bool routing = false, enabled_in_json = false;  // the JSON's switches
  std::int64_t total_layers = 0, num_layers = 0;
  std::vector<std::int64_t> layers;  // from 0 on
  std::string schedule_type = "fixed_linear";
  DifficultySchedule schedule;  // of the tokens that a layer keeps
};

// DeepSpeed's compression_training: layers that compute with few bits.
struct CompressionFlags {
  struct Weights {
    bool enabled = false;
    std::int64_t offset = 0, groups = 1;
    std::string type = "symmetric";
    bool in_forward = false;
    std::string modules;  // JSON: different_groups
  };
  struct Inputs {
    bool enabled = false;
    std::int64_t offset = 1000;
    std::string type = "symmetric", calibration = "dynamic";
    std::string modules;
  };
  Weights weights;
  Inputs inputs;

  bool enabled() const { return weights.enabled || inputs.enabled; }
};

struct LayerDropFlags {
  bool enabled = false;
  double theta = 1, gamma = 0.001;
};

// Learning from another model, the teacher.
struct DistillFlags {
  bool kd = false, mos = false;  // the same under two names: of its loss
  double weight = 1, temperature = 1;
  std::optional<std::int64_t> until;  // the iteration behind which the labels alone teach
  std::string load;                   // the teacher's checkpoint
  // What its record must say; without one, in a dry run, what the teacher is.
  std::optional<std::int64_t> num_layers, hidden_size, num_heads;
  std::vector<std::int64_t> num_experts = {1};
  std::optional<ModelOptions> teacher;  // as read from `load`: no flag

  bool asked() const { return kd || mos; }
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
  std::int64_t failed_saves = 3;               // in a row until the end; 0: never
  std::optional<std::int64_t> check_replicas;  // steps between comparisons
};

// A monitor of DeepSpeed's configuration: it writes to the folder OUTPUT/JOB.
struct MonitorFlags {
  bool enabled = false;
  std::string output, job = "DeepSpeedJobName";
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
  MonitorFlags csv_monitor, tensorboard_monitor;
  bool wall_clock_breakdown = false, comms_logger = false, flops_profiler = false;
  std::int64_t flops_step = 1;            // of the flops profiler
  std::optional<std::string> flops_file;  // instead of the output
};

struct PretrainOptions {
  std::string model_size;  // a name of model_sizes.h; fills what is not given
  ModelOptions model;      // the vocabulary is the tokenizer's
  RecomputeFlags recompute;
  BatchOptions batch;
  ParallelOptions parallel;
  OffloadFlags offload;
  LengthOptions length;
  CurriculumFlags curriculum;
  SamplingFlags sampling;
  RandomLtdFlags random_ltd;
  bool random_ltd_enabled() const {
    return random_ltd.asked && sampling.data_efficiency && random_ltd.routing &&
           random_ltd.enabled_in_json;
  }
  CompressionFlags compression;
  LayerDropFlags layer_drop;
  RateOptions rate;
  UpdateOptions update;
  PrecisionOptions precision;
  DataOptions data;
  InstructOptions instruct;         // of `finetune`
  TaskOptions task;                 // of `finetune --task`, whose epochs are those of `instruct`
  PreferenceOptions preference;     // of its pairs
  SentenceSampleOptions sentences;  // of families that are fed masked samples
  TokenizerOptions tokenizer;
  CheckpointFlags checkpoint;
  DistillFlags distillation;
  EvaluationOptions evaluation;
  StopOptions stop;
  LoggingOptions logging;
  bool deepspeed = false;
  std::string deepspeed_config;
  std::int64_t seed = 1234;
  bool allow_nondeterministic = false;
  GraphChoice cuda_graphs = GraphChoice::automatic;
  bool dry_run = false, dry_run_json = false;
};

// The options before any was read: the defaults of the family that the arguments name, which also
// decides what other options there are.
PretrainOptions pretrain_defaults(const std::vector<std::string>& arguments);
// Of `finetune`: instruction data or a task, and what Hugging Face's trainer has as defaults.
PretrainOptions finetune_defaults(const std::vector<std::string>& arguments);
// Of Megatron's tasks/main.py: the same with Megatron's defaults.
PretrainOptions task_defaults(const std::vector<std::string>& arguments);
// The task that the arguments name; empty: none.
std::string named_task(const std::vector<std::string>& arguments);

// Every option of Megatron-DeepSpeed's command line for GPT, with old and new spellings, and every
// key of its DeepSpeed configurations: what works, what has no effect, what is refused.
void describe(OptionTable& table, PretrainOptions& options);

// Parts of it, each in a file of its own.
void describe_network(OptionTable& table, PretrainOptions& options);
void describe_parallel(OptionTable& table, ParallelOptions& options);
void describe_chunks(OptionTable& table, SequenceChunkFlags& options);
void describe_offload(OptionTable& table, OffloadFlags& options);
void add_transport(OptionTable& table, Transport& transport);
void describe_fp8(OptionTable& table, Fp8Flags& options);
void describe_graphs(OptionTable& table, GraphChoice& choice);
void describe_training(OptionTable& table, PretrainOptions& options);
void describe_curriculum(OptionTable& table, PretrainOptions& options);
void describe_compression(OptionTable& table, PretrainOptions& options);
void describe_distillation(OptionTable& table, DistillFlags& options);
void describe_preference(OptionTable& table, PreferenceOptions& options);
void describe_output(OptionTable& table, PretrainOptions& options);
void describe_samples(OptionTable& table, PretrainOptions& options);
void describe_without_effect(OptionTable& table);
void describe_refused(OptionTable& table);
void describe_deepspeed_keys(OptionTable& table);

}  // namespace bloomery
