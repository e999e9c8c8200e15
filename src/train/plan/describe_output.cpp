#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

void describe_checkpoint(OptionTable& t, CheckpointFlags& o) {
  t.section("checkpoints");
  t.add("save", o.save, "Folder for checkpoints.");
  t.add("load", o.load,
        "Folder to resume from, or a Hugging Face model to start from. A folder without a "
        "checkpoint is allowed only when it equals --save.");
  t.add("adapter", o.adapter, "Folder of a PEFT LoRA adapter for the model, to train it further.");
  t.add("save-interval", o.save_interval,
        "Steps between checkpoints; none: one checkpoint at the end.", at_least(1))
      .alias("persistent-save-interval");
  t.add("no-save-optim", o.no_save_optim, "Save without the optimizer state.");
  t.add("no-save-rng", o.no_save_rng, "No effect: random numbers have no state to save.");
  t.add("no-load-optim", o.no_load_optim, "Start with a fresh optimizer state.");
  t.add("no-load-rng", o.no_load_rng, "No effect: random numbers have no state to load.");
  t.add("finetune", o.finetune, "Load the weights only and start at iteration 0.");
  t.add("use-checkpoint-args", o.use_checkpoint_args,
        "Take the model's options from --load instead of the flags; always so for a Hugging Face "
        "folder.")
      .off("Take the model's options from the flags instead of --load.");
  t.add("load-tag", o.load_tag, "Checkpoint of --load to use: 100, step-100 or global_step100.");
  t.add("reset-iteration", o.reset_iteration,
        "Load weights and optimizer, but count iterations and samples from 0.");
  t.add("exit-on-missing-checkpoint", o.exit_on_missing,
        "Exit when --load has no checkpoint, even when it equals --save.");
  t.add("keep-last", o.keep_last,
        "Keep this many newest checkpoints and delete older ones; 0: keep all.", at_least(0));
  t.add("keep-every", o.keep_every,
        "Never delete checkpoints of steps divisible by this number; 0: none.", at_least(0));
  t.add("synchronous-save", o.synchronous,
        "Finish writing each checkpoint before training continues.");
  t.add("fork", o.fork,
        "Branch off an earlier checkpoint: move later checkpoints of --save, with their logs, to "
        "SAVE/earlier-K instead of refusing the folder.");
}

void describe_tensorboard(OptionTable& t, LoggingOptions& o) {
  t.add("tensorboard-dir", o.tensorboard_dir, "Folder for TensorBoard events.");
  t.add("tensorboard-log-interval", o.tensorboard_interval, "Steps between TensorBoard events.",
        at_least(1));
  t.add("log-timers-to-tensorboard", o.timers_to_tensorboard, "Write timers to TensorBoard.");
  t.add("log-batch-size-to-tensorboard", o.batch_size_to_tensorboard,
        "Write the batch size to TensorBoard.");
  t.add("log-validation-ppl-to-tensorboard", o.validation_ppl_to_tensorboard,
        "Write the validation perplexity to TensorBoard.");
  t.add("log-optimizer-states-to-tensorboard", o.optimizer_states_to_tensorboard,
        "Write norms of weights and optimizer state to TensorBoard.");
  t.add("log-memory-to-tensorboard", o.memory_to_tensorboard, "Write memory use to TensorBoard.");
  t.add("log-world-size-to-tensorboard", o.world_size_to_tensorboard,
        "Write the number of ranks to TensorBoard.");
  t.add("log-learning-rate-to-tensorboard", o.learning_rate_to_tensorboard,
        "Write the learning rate to TensorBoard.")
      .off("Leave the learning rate out of TensorBoard.")
      .shorthand("no-log-learnig-rate-to-tensorboard", "false");
  t.add("log-loss-scale-to-tensorboard", o.loss_scale_to_tensorboard,
        "Write the loss scale to TensorBoard.")
      .off("Leave the loss scale out of TensorBoard.");
}

void describe_logging(OptionTable& t, LoggingOptions& o) {
  t.section("logging");
  t.add("log-interval", o.interval, "Steps between log lines.", at_least(1));
  t.add("log-format", o.format, "Format of log lines: Megatron-DeepSpeed's or Megatron-LM's.",
        {{"deepspeed", LoggingOptions::Format::deepspeed},
         {"nvidia", LoggingOptions::Format::nvidia}});
  t.add("log-throughput", o.throughput, "Log the model FLOP rate, by Megatron-LM's formula.");
  t.add("log-params-norm", o.params_norm, "Log the norm of the parameters.");
  t.add("log-num-zeros-in-grad", o.num_zeros_in_grad, "Log the number of zeros in the gradient.");
  t.add("timing-log-level", o.timing_level, "Detail of the timers.", between(0, 2));
  t.add_choice("timing-log-option", o.timing_option, "Ranks whose timers are logged.",
               {"minmax", "max", "all"});
  describe_tensorboard(t, o);
  t.add("loss-floor", o.loss_floor, "Lowest possible loss on this data, drawn in report.html.",
        at_least(0));
  t.add("report-samples", o.report_samples,
        "Prompts that the finished model continues in report.html.");
  t.add("straggler-percent", o.straggler_percent,
        "Warn of a rank that computes this many percent slower than the median of its stage; 0: "
        "never.",
        between(0, 10'000));
  t.add_choice("profile", o.profile,
               "Write a trace of the profiled steps of all ranks; pt-full adds shapes.",
               {"none", "pt", "pt-full"})
      .alone("pt");
  t.add("profile_steps", o.profile_steps, "First profiled step, and the step after the last one.",
        at_least(0));
}

void describe_monitor(OptionTable& t, MonitorFlags& o, const std::string& flag,
                      const std::string& path, const char* help) {
  t.add(flag, o.enabled, help).deepspeed(path + ".enabled");
  t.add(flag + "-path", o.output, concat("Folder above that of --", flag, "."))
      .deepspeed(path + ".output_path");
  t.add(flag + "-job-name", o.job, concat("Folder of --", flag, ", within its path."))
      .deepspeed(path + ".job_name");
}

// What sections of DeepSpeed's configuration ask for.
void describe_monitors(OptionTable& t, LoggingOptions& o) {
  describe_monitor(t, o.csv_monitor, "csv-monitor", "csv_monitor",
                   "Write loss, learning rate and loss scale to CSV files with DeepSpeed's names.");
  describe_monitor(t, o.tensorboard_monitor, "tensorboard-monitor", "tensorboard",
                   "Write the same to TensorBoard events with DeepSpeed's names.");
  t.add("wall-clock-breakdown", o.wall_clock_breakdown,
        "Time the passes and the optimizer: --timing-log-level 2.")
      .deepspeed("wall_clock_breakdown");
  t.add("comms-logger", o.comms_logger,
        "Time each call between ranks in the steps of --profile_steps: --profile pt.")
      .deepspeed("comms_logger.enabled");
  t.add("flops-profiler", o.flops_profiler, "Count the operations of one iteration.")
      .deepspeed("flops_profiler.enabled");
  t.add("flops-profiler-step", o.flops_step, "Iteration of --flops-profiler.", at_least(1))
      .deepspeed("flops_profiler.profile_step");
  t.add("flops-profiler-file", o.flops_file,
        "File for the lines of --flops-profiler; none: the output.")
      .deepspeed("flops_profiler.output_file");
}

void describe_evaluation(OptionTable& t, EvaluationOptions& o) {
  t.section("evaluation");
  t.add("eval-iters", o.iterations, "Global batches per evaluation; 0: no evaluation.",
        between(0, 1e9));
  t.add("eval-interval", o.interval, "Steps between evaluations.", between(1, 1e12));
  t.add("skip-train", o.skip_train, "Evaluate only.");
}

}  // namespace

void describe_output(OptionTable& t, PretrainOptions& o) {
  describe_evaluation(t, o.evaluation);
  describe_checkpoint(t, o.checkpoint);
  describe_logging(t, o.logging);
  describe_monitors(t, o.logging);
  t.section("DeepSpeed");
  t.add("deepspeed", o.deepspeed, "Take loss scale and gradient clipping from --deepspeed_config.")
      .alias("deepscale");
  t.add("deepspeed_config", o.deepspeed_config, "DeepSpeed's configuration file, JSON.")
      .alias("deepscale_config");
  t.section("this program");
  t.add("dry-run", o.dry_run,
        "Check all options, print the plan and its memory, and exit. Nothing is written and no "
        "device is used.");
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
              "With --task: model to start from, in any readable form, when --load has no "
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
