#include "train/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "parallel/vocab_embedding.h"
#include "samples/instruct/instruct_dataset.h"
#include "samples/tasks/task_dataset.h"
#include "train/plan/compression.h"

namespace bloomery {
namespace {

// Where training ends, in steps, samples and tokens.
void plan_length(const LengthOptions& length, Plan& plan) {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  plan.most_tokens = length.tokens;
  plan.train_iterations = length.iterations  ? *length.iterations
                          : length.samples   ? plan.batch.num_iterations(*length.samples)
                          : plan.most_tokens ? kAny
                                             : 0;
  // The step that reaches the tokens is the last.
  const RunLength run =
      run_length(plan.lengths, plan.batch, plan.train_iterations, plan.most_tokens);
  if (plan.train_iterations == kAny) {
    plan.train_iterations = run.iterations;
  }
  plan.last_iteration = run.iterations;
  plan.train_samples = run.samples;
  plan.train_tokens = run.tokens;
}

// Samples that the flags ask for, which is what Megatron indexes and decays weights over.
std::int64_t asked_samples(const LengthOptions& length, const Plan& plan) {
  return length.samples.value_or(plan.batch.num_samples(plan.train_iterations));
}

// Counted until so many samples were taken, in the midst of a step if need be.
std::int64_t tokens_of_first(const Plan& plan, std::int64_t samples) {
  const RunLength run =
      run_length(plan.lengths, plan.batch, plan.batch.num_iterations(samples), {});
  return run.tokens + (samples - run.samples) * plan.lengths.counted_length(run.iterations + 1);
}

ScheduleOptions schedule_options(const PretrainOptions& o, Plan& plan) {
  const RateOptions& rate = o.rate;
  const bool by_tokens = rate.decay_tokens || rate.warmup_tokens;
  const std::int64_t unit = by_tokens ? plan.seq_length : 1;
  const std::int64_t batch = plan.batch.global();
  plan.schedule_in_tokens = by_tokens;
  ScheduleOptions s;
  s.learning_rate = rate.rate.value_or(0);
  s.min_learning_rate = rate.min_rate;
  s.decay_style = rate.style;
  s.train_length = std::max<std::int64_t>(1, asked_samples(o.length, plan)) * unit;
  if (rate.decay_tokens) {
    s.decay_length = *rate.decay_tokens;
  } else if (rate.decay_samples || rate.decay_iterations) {
    s.decay_length =
        (rate.decay_samples ? *rate.decay_samples : *rate.decay_iterations * batch) * unit;
  }
  s.warmup_fraction = rate.warmup_fraction;
  const std::int64_t warmup = rate.warmup_samples + rate.warmup_iterations * batch;
  s.warmup_length = rate.warmup_tokens ? *rate.warmup_tokens : warmup;
  if (by_tokens && !rate.warmup_tokens && warmup > 0) {
    plan.warmup_samples = warmup;
    s.warmup_length = tokens_of_first(plan, warmup);
  }
  s.weight_decay = o.update.weight_decay;
  s.start_weight_decay = o.update.start_weight_decay;
  s.end_weight_decay = o.update.end_weight_decay;
  s.weight_decay_style = o.update.weight_decay_style;
  return s;
}

// The columns of its logits are held as the student's.
std::optional<TeacherOptions> teacher_options(const DistillFlags& o, const ModelOptions& student) {
  if (!o.teacher) {
    return std::nullopt;
  }
  TeacherOptions teacher{.model = *o.teacher, .weight = o.weight, .temperature = o.temperature};
  if (o.mos) {
    teacher.loss_name = "mos loss";
  }
  VocabularyOptions& vocabulary = teacher.model.vocabulary;
  vocabulary.size = vocabulary.size != 0 ? vocabulary.size : student.vocabulary.size;
  vocabulary.divisible_by = student.vocabulary.divisible_by;
  std::int64_t& max_length = teacher.model.positions.max_length;
  max_length = max_length != 0 ? max_length : student.positions.max_length;
  teacher.model = completed(teacher.model);
  return teacher;
}

void plan_evaluation(const PretrainOptions& o, Plan& plan) {
  const std::int64_t each = o.evaluation.iterations * plan.batch.global();
  plan.num_evaluations =
      o.evaluation.iterations > 0 ? plan.last_iteration / o.evaluation.interval : 0;
  plan.requested_samples = {asked_samples(o.length, plan),
                            (plan.train_iterations / o.evaluation.interval + 1) * each, each};
}

}  // namespace

ParameterCount count_parameters(const ModelOptions& options) {
  const Model model(options, Mesh::single(), DType::fp32);
  ParameterCount count;
  for (const Parameter* parameter : model.parameters()) {
    const std::int64_t elements = parameter->box.global.numel();
    count.total += elements;
    count.per_layer += parameter->name.find("blocks.0.") != std::string::npos ? elements : 0;
  }
  return count;
}

ModelOptions model_options(const PretrainOptions& options, std::int64_t vocabulary) {
  ModelOptions model = options.model;
  // Megatron's tokenizers add ids to a file's, which a task does not need and a model lacks.
  const bool stored = options.task.enabled() && model.vocabulary.size > 0;
  model.vocabulary.size =
      stored ? model.vocabulary.size : std::max(vocabulary, model.vocabulary.size);
  if (model.positions.max_length == 0) {
    model.positions.max_length =
        std::max(options.data.seq_length, options.sentences.decoder_seq_length);
  }
  return completed(model);
}

const Family& task_family(const TaskKind& task) {
  return family_with(task.answer == TaskAnswer::passage ? FamilyHead::text_vectors
                                                        : FamilyHead::masked_tokens);
}

const SampleKind& sample_kind(const PretrainOptions& options) {
  return find_sample_kind(find_family(options.model.family).dataset);
}

SampleOptions sample_options(const PretrainOptions& options) {
  SentenceSampleOptions sentences = options.sentences;
  sentences.one_segment = !options.model.segments.binary_head;
  return {.data = options.data,
          .sentences = sentences,
          .vocab_extra_ids = options.tokenizer.vocab_extra_ids,
          .seed = options.seed};
}

SampleFields sample_fields(const PretrainOptions& options) {
  if (options.task.enabled()) {
    return task_fields(options.task.kind(), options.data.seq_length, options.task.keep_last,
                       options.task.questions.negatives());
  }
  return options.instruct.enabled
             ? instruct_fields(options.data.seq_length, options.instruct.arrangement())
             : sample_kind(options).fields(sample_options(options));
}

RecomputeOptions recompute_options(const RecomputeFlags& flags, std::int64_t num_layers) {
  using Method = RecomputeOptions::Method;
  const auto at_most_all = [&](std::int64_t layers) {
    return static_cast<int>(
        std::clamp<std::int64_t>(layers, 1, std::max<std::int64_t>(num_layers, 1)));
  };
  const bool full = flags.granularity == RecomputeFlags::Granularity::full ||
                    (flags.granularity == RecomputeFlags::Granularity::none &&
                     flags.method != RecomputeFlags::Method::none);
  if (full) {
    const bool block = flags.method == RecomputeFlags::Method::block;
    return {block ? Method::block : Method::uniform, at_most_all(flags.num_layers)};
  }
  if (flags.checkpoint_activations) {
    return {Method::uniform, at_most_all(flags.checkpoint_num_layers)};
  }
  return {.cheap_values = flags.granularity == RecomputeFlags::Granularity::selective};
}

LossScaleOptions loss_scale_options(const PrecisionOptions& o) {
  if (o.dtype != DType::fp16) {
    return {};
  }
  const double fixed = o.loss_scale.value_or(0);
  LossScaleOptions scale;
  scale.dynamic = fixed == 0;
  scale.initial = fixed > 0               ? fixed
                  : o.initial_scale_power ? std::exp2(static_cast<double>(*o.initial_scale_power))
                                          : o.initial_loss_scale;
  scale.minimum = o.min_loss_scale;
  scale.window = static_cast<std::int64_t>(o.window);
  scale.hysteresis = o.hysteresis;
  scale.consecutive_hysteresis = o.consecutive_hysteresis;
  return scale;
}

std::int64_t global_batch_size(const PretrainOptions& o) {
  return o.batch.global.value_or(o.batch.micro * o.parallel.data_ranks() *
                                 o.batch.accumulation.value_or(1));
}

std::optional<Rampup> rampup(const BatchOptions& o) {
  if (o.rampup.size() != 3) {
    return std::nullopt;
  }
  return Rampup{o.rampup[0], o.rampup[1], o.rampup[2]};
}

std::int64_t Plan::schedule_units(std::int64_t iteration, std::int64_t consumed,
                                  std::int64_t samples) const {
  if (!schedule_in_tokens) {
    return samples;
  }
  if (consumed >= warmup_samples) {
    return lengths.tokens(iteration, samples);
  }
  const auto at = [&](std::int64_t count) {
    const double share = static_cast<double>(count) / static_cast<double>(warmup_samples);
    return std::llround(schedule.warmup * std::min(share, 1.0));
  };
  return at(consumed + samples) - at(consumed);
}

StepLengths step_lengths(const PretrainOptions& o) {
  StepLengths lengths{.full = o.data.seq_length,
                      .sequences = o.task.enabled()   ? o.task.kind().num_sequences()
                                   : o.instruct.pairs ? 2
                                                      : 1,
                      .micro_batch = o.batch.micro};
  if (o.curriculum.enabled) {
    lengths.curriculum = o.curriculum.schedule;
  }
  if (o.sampling.enabled()) {
    const std::vector<CurriculumMetric> metrics = curriculum_metrics(o.sampling.metrics);
    for (const char* name : {"seqlen_reshape", "seqlen_truncate"}) {
      const auto found = std::ranges::find(metrics, name, &CurriculumMetric::name);
      if (found != metrics.end()) {
        lengths.curriculum = found->schedule;
        lengths.reshape = name == std::string_view("seqlen_reshape");
      }
    }
  }
  if (o.random_ltd_enabled()) {
    lengths.kept_tokens = {o.random_ltd.schedule, o.random_ltd.num_layers, o.model.num_layers};
  }
  return lengths;
}

Layout layout(const PretrainOptions& o) {
  const ParallelOptions& p = o.parallel;
  Layout all{.degrees = {.tensor = p.tensor,
                         .context = p.context(),
                         .data = p.data_ranks(),
                         .pipeline = p.pipeline,
                         .expert = o.model.moe.any() ? std::gcd(p.expert, p.data_ranks()) : 1,
                         .ring = p.ring,
                         .sequence_parallel = p.sequence_parallel},
             .sharded = Sharding::of_stage(static_cast<int>(p.zero_stage.value_or(0))),
             .schedule = p.schedule,
             .decoder_stage = p.decoder_stage};
  if (p.layers_per_chunk) {
    all.chunks = static_cast<int>(o.model.num_layers / p.pipeline / *p.layers_per_chunk);
  }
  return all;
}

OffloadOptions offload_options(const OffloadFlags& flags, const SequenceChunkFlags& chunks) {
  using Device = OffloadFlags::Device;
  OffloadOptions all;
  all.values = flags.parameters != Device::none;
  if (flags.parameters == Device::nvme) {
    all.values_folder = flags.folder;
  }
  if (all.values) {
    all.optimizer_share = 1;
  } else if (flags.cpu_optimizer || flags.optimizer != Device::none) {
    all.optimizer_share = flags.ratio;
  }
  if (flags.optimizer == Device::nvme) {
    all.folder = flags.folder;
  }
  all.files = {.block_bytes = static_cast<std::size_t>(flags.block_bytes) / 4096 * 4096,
               .queue_depth = static_cast<int>(flags.queue_depth),
               .threads = static_cast<int>(flags.threads)};
  all.activations = flags.activations;
  all.divide_inputs = flags.divide_inputs;
  all.keys = chunks.enabled && chunks.offload;
  return all;
}

std::size_t memory_limit(const OffloadFlags& flags) {
  return static_cast<std::size_t>(flags.memory_limit_gib.value_or(0) * 0x1p30);
}

Plan make_plan(const PretrainOptions& o, std::int64_t vocabulary) {
  Plan plan;
  plan.rank.model = model_options(o, vocabulary);
  plan.rank.layout = layout(o);
  plan.rank.recompute = recompute_options(o.recompute, plan.rank.model.num_layers);
  plan.rank.dtype = o.precision.dtype;
  plan.rank.seed = static_cast<std::uint64_t>(o.seed);
  plan.rank.graphs = o.cuda_graphs;
  plan.rank.fp8 = fp8_options(o.precision.fp8);
  plan.rank.quantized_base = o.precision.quantized_base;
  if (!o.evaluation.skip_train) {
    plan.rank.teacher = teacher_options(o.distillation, plan.rank.model);
  }
  if (o.instruct.pairs) {
    plan.rank.preference = o.preference;
  }
  plan.padded_vocabulary =
      padded_vocabulary(plan.rank.model.vocabulary.size, plan.rank.model.vocabulary.divisible_by,
                        plan.rank.layout.degrees.tensor);
  plan.parameters = count_parameters(plan.rank.model);
  plan.micro_batch = o.batch.micro;
  plan.rank.replicas = o.parallel.replicas;
  plan.rank.offload = offload_options(o.offload, o.parallel.chunks);
  plan.data_ranks = plan.rank.layout.degrees.data;
  plan.seq_length = o.data.seq_length;
  plan.batch = BatchSize(global_batch_size(o), rampup(o.batch));
  plan.lengths = step_lengths(o);
  plan.rank.sequence_chunk = o.parallel.chunks.tokens();
  if (o.random_ltd_enabled()) {
    plan.rank.token_dropping_layers.assign(o.random_ltd.layers.begin(), o.random_ltd.layers.end());
  }
  if (o.layer_drop.enabled) {
    plan.rank.layer_drop = {o.layer_drop.theta, o.layer_drop.gamma};
  }
  plan.rank.grids = grids_of_weights(o.compression, plan.rank.model);
  if (o.sampling.enabled()) {
    plan.curriculum = {curriculum_metrics(o.sampling.metrics), o.sampling.seed,
                       o.sampling.cluster_path};
  }
  plan_length(o.length, plan);
  plan.rank.optimizer = {.rule = o.update.optimizer.rule(),
                         .clip = o.update.clip,
                         .schedule = schedule_options(o, plan),
                         .loss_scale = loss_scale_options(o.precision)};
  plan.schedule = make_schedule(plan.rank.optimizer.schedule);
  plan_evaluation(o, plan);
  return plan;
}

}  // namespace bloomery
