#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr double kMost = 9e15;  // exact in a double

void describe_batch(OptionTable& t, PretrainOptions& o) {
  t.section("batches and length");
  OptionRow& micro =
      t.add("micro-batch-size", o.batch.micro,
            "Sequences per forward pass of a rank; auto: the most that fit and divide the "
            "global batch.",
            between(1, 1e7))
          .deepspeed("train_micro_batch_size_per_gpu");
  if (o.batch.micro == 0) {
    micro.required();
  }
  t.add("global-batch-size", o.batch.global,
        "Sequences per step; none: micro-batch size x data-parallel ranks x accumulation.",
        between(1, 1e9))
      .deepspeed("train_batch_size");
  t.add("gradient-accumulation-steps", o.batch.accumulation,
        "Micro-batches per rank and step; none: what the global batch size asks for.",
        between(1, 1e9))
      .deepspeed("gradient_accumulation_steps");
  t.add("rampup-batch-size", o.batch.rampup,
        "Start, increment and number of samples over which the global batch size grows.",
        between(0, kMost));
  t.add("train-iters", o.length.iterations, "Steps to train.", between(1, kMost));
  t.add("train-samples", o.length.samples, "Sequences to train on.", between(1, kMost));
  t.add("train-tokens", o.length.tokens, "Tokens to train on at most.", between(1, kMost));
  t.add("exit-interval", o.stop.exit_interval,
        "Save and stop (exit code 75) at the next multiple of so many steps.", at_least(1));
  t.add("exit-duration-in-mins", o.stop.exit_minutes,
        "Save and stop (exit code 75) after so many minutes.", at_least(0));
  t.add("check-for-nan-in-loss-and-grad", o.stop.on_nan,
        "Stop at a loss or gradient that is no number instead of skipping the step.");
  t.add("check-replicas", o.stop.check_replicas,
        "Every so many steps compare the weights that several ranks hold, bit for bit, and stop if "
        "a rank's differ: its machine is broken.",
        at_least(1));
  t.add(
      "warn-after-skipped", o.stop.skipped_until_warning,
      "Warn when so many steps in a row were skipped; 0: never. Steps in which an fp16 loss scale "
      "can still fall do not count.",
      at_least(0));
  t.add("stop-after-skipped", o.stop.skipped_until_stop,
        "Stop (exit code 1) when so many steps in a row were skipped; 0: never.", at_least(0));
  t.add("stop-after-failed-saves", o.stop.failed_saves,
        "Stop (exit code 1) when so many saves in a row failed; 0: never.", at_least(0));
  t.add("kill-switch-file", o.stop.kill_switch_file, "Save and stop once this file exists.");
}

void describe_rate(OptionTable& t, RateOptions& o) {
  t.section("learning rate");
  t.add("lr", o.rate, "Peak learning rate.", at_least(0)).alias("learning-rate");
  t.add("min-lr", o.min_rate, "Lowest learning rate after the warm-up.", at_least(0));
  t.add("lr-decay-style", o.style, "How it falls.",
        {{"linear", DecayStyle::linear},
         {"constant", DecayStyle::constant},
         {"cosine", DecayStyle::cosine},
         {"inverse-square-root", DecayStyle::inverse_square_root}});
  t.add("lr-decay-iters", o.decay_iterations, "Steps until it is lowest; none: all.",
        between(1, kMost));
  t.add("lr-decay-samples", o.decay_samples, "The same in sequences.", between(1, kMost));
  t.add("lr-decay-tokens", o.decay_tokens, "The same in tokens.", between(1, kMost));
  t.add("lr-warmup-fraction", o.warmup_fraction, "Warm-up as a share of the decay.", between(0, 1));
  t.add("lr-warmup-iters", o.warmup_iterations, "Warm-up in steps.", between(0, kMost));
  t.add("lr-warmup-samples", o.warmup_samples, "Warm-up in sequences.", between(0, kMost));
  t.add("lr-warmup-tokens", o.warmup_tokens, "Warm-up in tokens.", between(0, kMost));
  t.add("override-opt_param-scheduler", o.override_scheduler,
        "On resuming, the schedule of the flags replaces the checkpoint's.")
      .alias("override-lr-scheduler");
  t.add("use-checkpoint-opt_param-scheduler", o.use_checkpoint_scheduler,
        "On resuming, the schedule of the checkpoint replaces the flags'.")
      .alias("use-checkpoint-lr-scheduler");
  t.add("extend", o.extend,
        "Train a run further than it was started for, with a larger --train-iters (or samples, "
        "tokens). stretch: the schedule reaches to the new end; hold: the checkpoint's schedule "
        "stays, and its lowest rate after its end.",
        {{"no", Extend::no}, {"stretch", Extend::stretch}, {"hold", Extend::hold}})
      .alone("stretch");
}

void describe_update(OptionTable& t, UpdateOptions& o) {
  t.section("optimizer");
  describe(t, o.optimizer);
  t.add("clip-grad", o.clip, "Largest norm of the gradient; 0: any.", at_least(0))
      .deepspeed("gradient_clipping")
      .deepspeed_wins();
  t.add("weight-decay", o.weight_decay, "Decay of weights.", at_least(0));
  t.add("start-weight-decay", o.start_weight_decay, "Where a growing decay starts.", at_least(0));
  t.add("end-weight-decay", o.end_weight_decay, "Where it ends.", at_least(0));
  t.add("weight-decay-incr-style", o.weight_decay_style, "How it grows.",
        {{"constant", WeightDecayStyle::constant},
         {"linear", WeightDecayStyle::linear},
         {"cosine", WeightDecayStyle::cosine}});
}

void describe_precision(OptionTable& t, PretrainOptions& options) {
  PrecisionOptions& o = options.precision;
  t.section("precision");
  t.add("dtype", o.dtype, "Of parameters and activations; sums are kept in fp32.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}})
      .shorthand("fp16", "fp16")
      .shorthand("bf16", "bf16")
      .deepspeed("fp16.enabled", "fp16")
      .deepspeed("bf16.enabled", "bf16")
      .deepspeed("bfloat16.enabled", "bf16");
  t.add("loss-scale", o.loss_scale, "Fixed factor on an fp16 loss; none or 0: dynamic.",
        at_least(0))
      .deepspeed("fp16.loss_scale")
      .deepspeed_wins();
  t.add("initial-loss-scale", o.initial_loss_scale, "Where a dynamic scale starts.", above(0));
  t.add("initial-scale-power", o.initial_scale_power,
        "DeepSpeed's way to say it: the power of two.", between(0, 127))
      .deepspeed("fp16.initial_scale_power");
  t.add("min-loss-scale", o.min_loss_scale, "Lowest dynamic scale.", above(0))
      .deepspeed("fp16.min_loss_scale")
      .deepspeed_wins();
  t.add("loss-scale-window", o.window, "Clean steps before the scale doubles.", at_least(1))
      .deepspeed("fp16.loss_scale_window")
      .deepspeed_wins();
  t.add("hysteresis", o.hysteresis, "Overflows before the scale is halved.", at_least(1))
      .deepspeed("fp16.hysteresis")
      .deepspeed_wins();
  t.add("consecutive-hysteresis", o.consecutive_hysteresis,
        "A clean step forgives earlier overflows; without it only a doubled scale does.")
      .deepspeed("fp16.consecutive_hysteresis")
      .deepspeed_wins();
  t.add("stop-at-min-loss-scale", o.stop_at_min_scale,
        "Stop (exit code 1) at an overflow at the lowest scale, as DeepSpeed does; on with "
        "--deepspeed.");
  t.add("quantize-base", o.quantized_base,
        "With --lora: the weights of linear layers in blocks, which do not learn, are held in 8 "
        "bits (int8, a scale for each row, as LLM.int8) or 4 (nf4, a scale for 64 numbers, as "
        "QLoRA).",
        {{"none", QuantizedFormat::none},
         {"int8", QuantizedFormat::int8},
         {"nf4", QuantizedFormat::nf4}})
      .shorthand("load-in-8bit", "int8")
      .shorthand("load-in-4bit", "nf4");
  t.add("allow-nondeterministic", options.allow_nondeterministic,
        "Sums may depend on timing where that is faster, and several ranks choose the kernels of "
        "their products by timing in each run; without it by fixed rules, and one GPU alone by "
        "timing once, for all later runs.")
      .shorthand("deterministic-mode", "false");
  describe_graphs(t, options.cuda_graphs);
}

void describe_recompute(OptionTable& t, RecomputeFlags& o) {
  using Granularity = RecomputeFlags::Granularity;
  using Method = RecomputeFlags::Method;
  t.section("recomputation");
  t.add("recompute-granularity", o.granularity,
        "full: whole layers. selective: what one pass over kept memory makes again, norms and "
        "activations; the probabilities of attention are never kept.",
        {{"none", Granularity::none},
         {"full", Granularity::full},
         {"selective", Granularity::selective}})
      .shorthand("recompute-activations", "selective");
  t.add("recompute-method", o.method,
        "uniform: groups of layers of which the inputs are kept. block: the first layers.",
        {{"none", Method::none}, {"uniform", Method::uniform}, {"block", Method::block}})
      .alias("activations-checkpoint-method");
  t.add("recompute-num-layers", o.num_layers, "Layers per group, or how many first layers.",
        between(1, 1e6))
      .alias("activations-checkpoint-num-layers");
  t.add("checkpoint-activations", o.checkpoint_activations,
        "Old spelling of full, uniform recomputation.");
  t.add("checkpoint-num-layers", o.checkpoint_num_layers, "Layers per group of it.",
        between(1, 1e6));
}

}  // namespace

void describe_graphs(OptionTable& t, GraphChoice& choice) {
  t.add("cuda-graphs", choice,
        "Whether the passes of one GPU are captured in CUDA graphs and replayed, with the same "
        "numbers: auto, where that is faster in the first steps; on, wherever they can be captured "
        "(one rank, nothing on the host, no teacher, no layers or tokens that are dropped).",
        {{"auto", GraphChoice::automatic}, {"on", GraphChoice::on}, {"off", GraphChoice::off}})
      .shorthand("enable-cuda-graph", "on");
}

void describe_training(OptionTable& t, PretrainOptions& o) {
  describe_batch(t, o);
  describe_rate(t, o.rate);
  describe_update(t, o.update);
  describe_precision(t, o);
  describe_fp8(t, o.precision.fp8);
  describe_recompute(t, o.recompute);
}

}  // namespace bloomery
