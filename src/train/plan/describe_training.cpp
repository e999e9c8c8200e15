#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr double kMost = 9e15;  // exact in a double

void describe_batch(OptionTable& t, PretrainOptions& o) {
  t.section("batches and length");
  OptionRow& micro = t.add("micro-batch-size", o.batch.micro,
                           "Sequences per forward pass of a rank; auto: the largest that fits in "
                           "memory and divides the global batch.",
                           between(1, 1e7))
                         .deepspeed("train_micro_batch_size_per_gpu");
  if (o.batch.micro == 0) {
    micro.required();
  }
  t.add("global-batch-size", o.batch.global,
        "Sequences per step; none: micro-batch size x data-parallel ranks x accumulation.",
        between(1, 1e9))
      .deepspeed("train_batch_size")
      .flag_wins();
  t.add("gradient-accumulation-steps", o.batch.accumulation,
        "Micro-batches per rank and step; none: computed from the global batch size.",
        between(1, 1e9))
      .deepspeed("gradient_accumulation_steps");
  t.add("rampup-batch-size", o.batch.rampup,
        "Batch size ramp-up: start, increment and number of samples.", between(0, kMost));
  t.add("train-iters", o.length.iterations, "Number of training steps.", between(1, kMost));
  t.add("train-samples", o.length.samples, "Number of training sequences.", between(1, kMost));
  t.add("train-tokens", o.length.tokens, "Maximum number of training tokens.", between(1, kMost));
  t.add("exit-interval", o.stop.exit_interval,
        "Save and exit (code 75) at the next multiple of this many steps.", at_least(1));
  t.add("exit-duration-in-mins", o.stop.exit_minutes,
        "Save and exit (code 75) after this many minutes.", at_least(0));
  t.add("check-for-nan-in-loss-and-grad", o.stop.on_nan,
        "End the run at a NaN or infinite loss or gradient instead of skipping the step.");
  t.add("check-replicas", o.stop.check_replicas,
        "Compare replicated weights bit by bit every N steps and end the run when a rank differs, "
        "which means broken hardware.",
        at_least(1));
  t.add("warn-after-skipped", o.stop.skipped_until_warning,
        "Warn after this many skipped steps in a row; 0: never. Skips that lower an fp16 loss "
        "scale do not count.",
        at_least(0));
  t.add("stop-after-skipped", o.stop.skipped_until_stop,
        "Exit (code 1) after this many skipped steps in a row; 0: never.", at_least(0));
  t.add("stop-after-failed-saves", o.stop.failed_saves,
        "Exit (code 1) after this many failed saves in a row; 0: never.", at_least(0));
  t.add("kill-switch-file", o.stop.kill_switch_file, "Save and exit when this file exists.");
}

void describe_rate(OptionTable& t, RateOptions& o) {
  t.section("learning rate");
  t.add("lr", o.rate, "Peak learning rate.", at_least(0)).alias("learning-rate");
  t.add("min-lr", o.min_rate, "Minimum learning rate after the warm-up.", at_least(0));
  t.add("lr-decay-style", o.style, "Learning rate decay.",
        {{"linear", DecayStyle::linear},
         {"constant", DecayStyle::constant},
         {"cosine", DecayStyle::cosine},
         {"inverse-square-root", DecayStyle::inverse_square_root}});
  t.add("lr-decay-iters", o.decay_iterations, "Decay length in steps; none: the whole run.",
        between(1, kMost));
  t.add("lr-decay-samples", o.decay_samples, "Decay length in sequences.", between(1, kMost));
  t.add("lr-decay-tokens", o.decay_tokens, "Decay length in tokens.", between(1, kMost));
  t.add("lr-warmup-fraction", o.warmup_fraction,
        "Warm-up length as a fraction of the decay length.", between(0, 1));
  t.add("lr-warmup-iters", o.warmup_iterations, "Warm-up length in steps.", between(0, kMost));
  t.add("lr-warmup-samples", o.warmup_samples, "Warm-up length in sequences.", between(0, kMost));
  t.add("lr-warmup-tokens", o.warmup_tokens, "Warm-up length in tokens.", between(0, kMost));
  t.add("override-opt_param-scheduler", o.override_scheduler,
        "On resume, use the schedule of the flags instead of the checkpoint's.")
      .alias("override-lr-scheduler");
  t.add("use-checkpoint-opt_param-scheduler", o.use_checkpoint_scheduler,
        "On resume, use the schedule of the checkpoint instead of the flags'.")
      .alias("use-checkpoint-lr-scheduler");
  t.add(
       "extend", o.extend,
       "Train a finished run longer, with a larger --train-iters (or samples, tokens). stretch: "
       "extend the schedule to the new end. hold: keep the schedule, then its final learning rate.",
       {{"no", Extend::no}, {"stretch", Extend::stretch}, {"hold", Extend::hold}})
      .alone("stretch");
}

void describe_update(OptionTable& t, UpdateOptions& o) {
  t.section("optimizer");
  describe(t, o.optimizer);
  t.add("clip-grad", o.clip, "Gradient-norm clipping threshold; 0 disables it.", at_least(0))
      .deepspeed("gradient_clipping")
      .deepspeed_wins();
  t.add("weight-decay", o.weight_decay, "Weight decay.", at_least(0));
  t.add("start-weight-decay", o.start_weight_decay, "Initial weight decay of a growing schedule.",
        at_least(0));
  t.add("end-weight-decay", o.end_weight_decay, "Final weight decay of a growing schedule.",
        at_least(0));
  t.add("weight-decay-incr-style", o.weight_decay_style, "Schedule of the weight decay.",
        {{"constant", WeightDecayStyle::constant},
         {"linear", WeightDecayStyle::linear},
         {"cosine", WeightDecayStyle::cosine}});
}

void describe_precision(OptionTable& t, PretrainOptions& options) {
  PrecisionOptions& o = options.precision;
  t.section("precision");
  t.add("dtype", o.dtype,
        "Data type of parameters and activations; master weights and sums stay in fp32.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}})
      .shorthand("fp16", "fp16")
      .shorthand("bf16", "bf16")
      .deepspeed("fp16.enabled", "fp16")
      .deepspeed("bf16.enabled", "bf16")
      .deepspeed("bfloat16.enabled", "bf16")
      .deepspeed_wins();
  t.add("loss-scale", o.loss_scale, "Fixed fp16 loss scale; none or 0: dynamic.", at_least(0))
      .deepspeed("fp16.loss_scale")
      .deepspeed_wins();
  t.add("initial-loss-scale", o.initial_loss_scale, "Initial dynamic loss scale.", above(0));
  t.add("initial-scale-power", o.initial_scale_power,
        "Initial dynamic loss scale as a power of two (DeepSpeed).", between(0, 127))
      .deepspeed("fp16.initial_scale_power");
  t.add("min-loss-scale", o.min_loss_scale, "Minimum dynamic loss scale.", above(0))
      .deepspeed("fp16.min_loss_scale")
      .deepspeed_wins();
  t.add("loss-scale-window", o.window, "Steps without overflow before the loss scale doubles.",
        at_least(1))
      .deepspeed("fp16.loss_scale_window")
      .deepspeed_wins();
  t.add("hysteresis", o.hysteresis, "Overflows before the loss scale is halved.", at_least(1))
      .deepspeed("fp16.hysteresis")
      .deepspeed_wins();
  t.add("consecutive-hysteresis", o.consecutive_hysteresis,
        "Reset the overflow count after each step without overflow.")
      .off("Reset the overflow count only when the loss scale doubles.")
      .deepspeed("fp16.consecutive_hysteresis")
      .deepspeed_wins();
  t.add("stop-at-min-loss-scale", o.stop_at_min_scale,
        "Exit (code 1) on an overflow at the minimum loss scale, as DeepSpeed does; on with "
        "--deepspeed.");
  t.add("quantize-base", o.quantized_base,
        "With --lora: weight-only quantization of the frozen linear layers: int8 with a scale per "
        "row (LLM.int8), or nf4 with a scale per 64 numbers (QLoRA).",
        {{"none", QuantizedFormat::none},
         {"int8", QuantizedFormat::int8},
         {"nf4", QuantizedFormat::nf4}})
      .shorthand("load-in-8bit", "int8")
      .shorthand("load-in-4bit", "nf4");
  t.add("allow-nondeterministic", options.allow_nondeterministic,
        "Allow faster kernels whose sums depend on timing, and choose kernels by timing in each "
        "run.")
      .shorthand("deterministic-mode", "false");
  describe_graphs(t, options.cuda_graphs);
}

void describe_recompute(OptionTable& t, RecomputeFlags& o) {
  using Granularity = RecomputeFlags::Granularity;
  using Method = RecomputeFlags::Method;
  t.section("recomputation");
  t.add("recompute-granularity", o.granularity,
        "Activation recomputation. full: whole layers. selective: norms and activation functions.",
        {{"none", Granularity::none},
         {"full", Granularity::full},
         {"selective", Granularity::selective}})
      .shorthand("recompute-activations", "selective");
  t.add("recompute-method", o.method,
        "uniform: recompute groups of layers. block: recompute the first layers only.",
        {{"none", Method::none}, {"uniform", Method::uniform}, {"block", Method::block}})
      .alias("activations-checkpoint-method");
  t.add("recompute-num-layers", o.num_layers,
        "Layers per group (uniform), or number of recomputed layers (block).", between(1, 1e6))
      .alias("activations-checkpoint-num-layers");
  t.add("checkpoint-activations", o.checkpoint_activations,
        "Recompute whole layers: the old name of --recompute-granularity full --recompute-method "
        "uniform.");
  t.add("checkpoint-num-layers", o.checkpoint_num_layers,
        "Layers per group of --checkpoint-activations.", between(1, 1e6));
}

}  // namespace

void describe_graphs(OptionTable& t, GraphChoice& choice) {
  t.add("cuda-graphs", choice,
        "Replay the passes as CUDA graphs; results are the same. auto: where it is faster. on: "
        "wherever it is possible (one rank, no offload, no teacher, no dropped layers or tokens).",
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
