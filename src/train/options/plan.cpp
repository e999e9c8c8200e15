#include "train/options/plan.h"

#include <algorithm>
#include <cmath>

#include "parallel/vocab_embedding.h"

namespace bloomery {
namespace {

// Where training ends, in steps, samples and tokens.
void plan_length(const LengthOptions& length, Plan& plan) {
  const std::int64_t per_sample = plan.seq_length;
  if (length.iterations) {
    plan.train_iterations = *length.iterations;
  } else if (length.samples) {
    plan.train_iterations = plan.batch.num_iterations(*length.samples);
  }
  if (length.tokens) {  // the step that reaches them is the last
    const std::int64_t samples = (*length.tokens + per_sample - 1) / per_sample;
    const std::int64_t full = plan.batch.num_iterations(samples);
    const std::int64_t needed = full + (plan.batch.num_samples(full) < samples ? 1 : 0);
    if (plan.train_iterations == 0) {
      plan.train_iterations = needed;
    }
    plan.last_iteration = std::min(plan.train_iterations, needed);
  } else {
    plan.last_iteration = plan.train_iterations;
  }
  plan.train_samples = plan.batch.num_samples(plan.last_iteration);
  plan.train_tokens = plan.train_samples * per_sample;
}

// Samples that the flags ask for, which is what Megatron indexes and decays weights over.
std::int64_t asked_samples(const LengthOptions& length, const Plan& plan) {
  return length.samples.value_or(plan.batch.num_samples(plan.train_iterations));
}

ScheduleOptions schedule_options(const PretrainOptions& o, Plan& plan) {
  const RateOptions& rate = o.rate;
  const bool by_tokens = rate.decay_tokens || rate.warmup_tokens;
  const std::int64_t unit = by_tokens ? plan.seq_length : 1;
  const std::int64_t batch = plan.batch.global();
  plan.schedule_units_per_sample = unit;
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
  s.warmup_length = rate.warmup_tokens
                        ? *rate.warmup_tokens
                        : (rate.warmup_samples + rate.warmup_iterations * batch) * unit;
  s.weight_decay = o.update.weight_decay;
  s.start_weight_decay = o.update.start_weight_decay;
  s.end_weight_decay = o.update.end_weight_decay;
  s.weight_decay_style = o.update.weight_decay_style;
  return s;
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
    count.per_layer += parameter->name.starts_with("blocks.0.") ? elements : 0;
  }
  return count;
}

ModelOptions model_options(const PretrainOptions& options, std::int64_t vocabulary) {
  ModelOptions model = options.model;
  model.vocabulary.size = std::max(vocabulary, model.vocabulary.size);
  if (model.positions.max_length == 0) {
    model.positions.max_length = options.data.seq_length;
  }
  return completed(model);
}

const SampleKind& sample_kind(const PretrainOptions& options) {
  return find_sample_kind(find_family(options.model.family).dataset);
}

SampleOptions sample_options(const PretrainOptions& options) {
  return {.data = options.data,
          .sentences = options.sentences,
          .vocab_extra_ids = options.tokenizer.vocab_extra_ids,
          .seed = options.seed};
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

Layout layout(const PretrainOptions& o) {
  const ParallelOptions& p = o.parallel;
  Layout all{.degrees = {.tensor = p.tensor,
                         .context = p.sequence,
                         .data = p.data_ranks(),
                         .pipeline = p.pipeline,
                         .sequence_parallel = p.sequence_parallel},
             .sharded = Sharding::of_stage(static_cast<int>(p.zero_stage.value_or(0))),
             .schedule = p.schedule};
  if (p.layers_per_chunk) {
    all.chunks = static_cast<int>(o.model.num_layers / p.pipeline / *p.layers_per_chunk);
  }
  return all;
}

Plan make_plan(const PretrainOptions& o, std::int64_t vocabulary) {
  Plan plan;
  plan.model = model_options(o, vocabulary);
  plan.recompute = recompute_options(o.recompute, plan.model.num_layers);
  plan.dtype = o.precision.dtype;
  plan.fp8 = fp8_options(o.precision.fp8);
  plan.padded_vocabulary = padded_vocabulary(
      plan.model.vocabulary.size, plan.model.vocabulary.divisible_by, plan.layout.degrees.tensor);
  plan.parameters = count_parameters(plan.model);
  plan.micro_batch = o.batch.micro;
  plan.layout = layout(o);
  plan.replicas = o.parallel.replicas;
  plan.data_ranks = plan.layout.degrees.data;
  plan.seq_length = o.data.seq_length;
  plan.batch = BatchSize(global_batch_size(o), rampup(o.batch));
  plan_length(o.length, plan);
  plan.optimizer = {.kind = o.update.kind,
                    .beta1 = o.update.beta1,
                    .beta2 = o.update.beta2,
                    .epsilon = o.update.epsilon,
                    .momentum = o.update.momentum,
                    .clip = o.update.clip,
                    .schedule = schedule_options(o, plan),
                    .loss_scale = loss_scale_options(o.precision)};
  plan.schedule = make_schedule(plan.optimizer.schedule);
  plan_evaluation(o, plan);
  return plan;
}

}  // namespace bloomery
