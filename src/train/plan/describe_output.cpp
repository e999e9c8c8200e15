#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

void describe_checkpoint(OptionTable& t, CheckpointFlags& o) {
  t.section("checkpoints");
  t.add("save", o.save, "Folder for checkpoints.");
  t.add("load", o.load,
        "Folder to resume from, or a Hugging Face model to start from; without a checkpoint it "
        "must be "
        "that of --save, which a first start leaves empty.");
  t.add("adapter", o.adapter,
        "A folder of PEFT's with a LoRA adapter for that model, which is trained further.");
  t.add("save-interval", o.save_interval, "Steps between checkpoints; none: one at the end.",
        at_least(1))
      .alias("persistent-save-interval");
  t.add("no-save-optim", o.no_save_optim, "Leave the optimizer's state out.");
  t.add("no-save-rng", o.no_save_rng, "Nothing to leave out: randomness has no state here.");
  t.add("no-load-optim", o.no_load_optim, "Start with fresh moments.");
  t.add("no-load-rng", o.no_load_rng, "Nothing to leave out: randomness has no state here.");
  t.add("finetune", o.finetune, "Take the weights alone and start at iteration 0.");
  t.add("use-checkpoint-args", o.use_checkpoint_args,
        "The model's options are those of --load, not flags; always so for a Hugging Face folder.");
  t.add("load-tag", o.load_tag, "Which checkpoint of --load: 100, step-100 or global_step100.");
  t.add("reset-iteration", o.reset_iteration,
        "Take weights and optimizer from --load and count iterations and samples from 0.");
  t.add("exit-on-missing-checkpoint", o.exit_on_missing,
        "Stop when --load holds no checkpoint, also where it is --save.");
  t.add("keep-last", o.keep_last, "Delete older checkpoints than so many; 0 keeps all.",
        at_least(0));
  t.add("keep-every", o.keep_every, "Never delete those of multiples of so many steps; 0: none.",
        at_least(0));
  t.add("synchronous-save", o.synchronous, "Write each checkpoint before training goes on.");
  t.add("fork", o.fork,
        "Move checkpoints of --save that are later than this run's start, with the logs, to "
        "SAVE/earlier-K instead of refusing the folder.");
}

void describe_tensorboard(OptionTable& t, LoggingOptions& o) {
  t.add("tensorboard-dir", o.tensorboard_dir, "Folder for TensorBoard events.");
  t.add("tensorboard-log-interval", o.tensorboard_interval, "Steps between events.", at_least(1));
  t.add("log-timers-to-tensorboard", o.timers_to_tensorboard, "Also timers.");
  t.add("log-batch-size-to-tensorboard", o.batch_size_to_tensorboard, "Also the batch size.");
  t.add("log-validation-ppl-to-tensorboard", o.validation_ppl_to_tensorboard,
        "Also the perplexity of validations.");
  t.add("log-optimizer-states-to-tensorboard", o.optimizer_states_to_tensorboard,
        "Also norms of moments and weights.");
  t.add("log-memory-to-tensorboard", o.memory_to_tensorboard, "Also memory.");
  t.add("log-world-size-to-tensorboard", o.world_size_to_tensorboard, "Also the number of ranks.");
  t.add("log-learning-rate-to-tensorboard", o.learning_rate_to_tensorboard,
        "Also the learning rate.")
      .shorthand("no-log-learnig-rate-to-tensorboard", "false");
  t.add("log-loss-scale-to-tensorboard", o.loss_scale_to_tensorboard, "Also the loss scale.");
}

void describe_logging(OptionTable& t, LoggingOptions& o) {
  t.section("logging");
  t.add("log-interval", o.interval, "Steps per log line.", at_least(1));
  t.add("log-format", o.format, "Whose log lines: Megatron-DeepSpeed's or Megatron-LM's.",
        {{"deepspeed", LoggingOptions::Format::deepspeed},
         {"nvidia", LoggingOptions::Format::nvidia}});
  t.add("log-throughput", o.throughput, "Model FLOP rate in log lines.");
  t.add("log-params-norm", o.params_norm, "Norm of the parameters in log lines.");
  t.add("log-num-zeros-in-grad", o.num_zeros_in_grad, "Zeros of the gradient in log lines.");
  t.add("timing-log-level", o.timing_level, "Detail of timers.", between(0, 2));
  t.add_choice("timing-log-option", o.timing_option, "Which ranks' timers.",
               {"minmax", "max", "all"});
  describe_tensorboard(t, o);
  t.add("loss-floor", o.loss_floor,
        "A loss that no model can have on these data, for the curves of report.html.", at_least(0));
  t.add("report-samples", o.report_samples,
        "Prompts from which the finished model writes on, shown in report.html.");
  t.add("straggler-percent", o.straggler_percent,
        "Warn, once in a log interval, of a rank that computes so much slower than the median of "
        "its kind; 0: never.",
        between(0, 10'000));
  t.add_choice("profile", o.profile,
               "Write a trace of the chosen steps of all ranks; pt-full with shapes.",
               {"none", "pt", "pt-full"})
      .alone("pt");
  t.add("profile_steps", o.profile_steps, "First step of the trace and the one after its last.",
        at_least(0));
}

void describe_evaluation(OptionTable& t, EvaluationOptions& o) {
  t.section("evaluation");
  t.add("eval-iters", o.iterations, "Global batches per evaluation; 0: none.", between(0, 1e9));
  t.add("eval-interval", o.interval, "Steps between evaluations.", between(1, 1e12));
  t.add("skip-train", o.skip_train, "Only evaluate.");
}

}  // namespace

void describe_output(OptionTable& t, PretrainOptions& o) {
  describe_evaluation(t, o.evaluation);
  describe_checkpoint(t, o.checkpoint);
  describe_logging(t, o.logging);
  t.section("DeepSpeed");
  t.add("deepspeed", o.deepspeed, "Take loss scale and clipping from --deepspeed_config.")
      .alias("deepscale");
  t.add("deepspeed_config", o.deepspeed_config, "DeepSpeed's configuration, JSON.")
      .alias("deepscale_config");
  t.section("this program");
  t.add("dry-run", o.dry_run,
        "Check all options, print what follows from them, and stop: nothing is written and no "
        "device is touched.");
  t.add("json", o.dry_run_json, "With --dry-run: print one JSON object.");
}

void describe(OptionTable& table, PretrainOptions& options) {
  describe_network(table, options);
  describe_training(table, options);
  describe_curriculum(table, options);
  describe_compression(table, options);
  describe_distillation(table, options.distillation);
  describe_parallel(table, options.parallel);
  describe_offload(table, options.offload);
  describe(table, options.data);
  if (options.instruct.enabled || options.task.enabled()) {
    describe(table, options.instruct);
    describe(table, options.task);
    table.add("pretrained-checkpoint", options.checkpoint.pretrained,
              "With --task: the model to start from, in any form that is read, where --load has no "
              "checkpoint of this run.");
    describe_preference(table, options.preference);
  }
  describe(table, options.tokenizer);
  describe_output(table, options);
  describe_samples(table, options);
  describe_without_effect(table);
  describe_refused(table);
  describe_deepspeed_keys(table);
}

}  // namespace bloomery
