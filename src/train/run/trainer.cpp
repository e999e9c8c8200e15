#include "train/run/trainer.h"

#include <cmath>
#include <ctime>
#include <filesystem>

#include "ops/attention/attention_settings.h"
#include "ops/matmul/choices.h"
#include "train/plan/planned_rank.h"
#include "train/run/rank_lines.h"
#include "train/step/attention_ahead.h"
#include "train/step/optimizer_statistics.h"
#include "train/step/replica_check.h"
#include "train/step/schedule_record.h"
#include "train/step/teacher.h"

namespace bloomery {
namespace {

RankOptions rank_options(const RunInputs& inputs) {
  RankOptions o = inputs.plan.rank;
  o.device = inputs.device;
  o.optimizer.schedule = inputs.facts.schedule;
  o.device.memory_limit = memory_limit(inputs.options.offload);
  o.initialize_beside = true;
  return o;
}

// Adds the part that one of `count` equal evaluations has in their mean.
void add_mean(Rank::Losses& means, const Rank::Losses& losses, std::int64_t count) {
  means.resize(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    means[i].name = losses[i].name;
    means[i].value += losses[i].value / static_cast<double>(count);
  }
}

}  // namespace

Trainer::Trainer(const RunInputs& inputs, std::unique_ptr<Communicator> world, RunLog& log)
    : inputs_(inputs),
      options_(inputs.options),
      plan_(inputs.plan),
      log_(log),
      skipped_(options_.stop, options_.precision.stop_at_min_scale,
               plan_.rank.optimizer.loss_scale) {
  setup(std::move(world));
  open_data();
  begin_saving();
  if (rank_->stream().on_cuda() && !options_.evaluation.skip_train) {
    make_attention_plans(rank_->stream(), attention_calls(plan_, sample_fields(options_)));
  }
  rank_->stage().await_initial_values();
  if (inputs.task != nullptr) {
    epochs_ = std::make_unique<TaskEpochs>(*inputs.task, options_, plan_, *rank_, log_, progress_);
  }
  if (plan_.rank.preference) prepare_reference();
  log_.line(setup_done_line());
  log_.timers(
      timers_->collect({"model-and-optimizer-setup", "train/valid/test-data-iterators-setup"}, 1,
                       rank_->mesh().host()));
}

void Trainer::setup(std::unique_ptr<Communicator> world) {
  const Clock::time_point start = Clock::now();
  rank_ = std::make_unique<Rank>(rank_options(inputs_), std::move(world));
  Device& device = rank_->stream().device();
  // Ranks that time side by side could choose differently from what they read next time.
  const bool alone = rank_->mesh().world().size() == 1;
  device.service<MatmulChoices>().timing =
      options_.allow_nondeterministic || (alone && rank_->stream().on_cuda());
  device.service<MatmulChoices>().lasting = alone;
  device.service<AttentionSettings>().deterministic = !options_.allow_nondeterministic;
  timers_ = std::make_unique<Timers>(rank_->stream(), options_.logging.timing_level);
  rank_->runner().executor().time_passes(*timers_);
  timers_->add("model-and-optimizer-setup", seconds_since(start));
  log_parameters(*rank_, log_);
  log_state(*rank_, log_);
  log_offload(*rank_, log_);
  log_layers_without_fp8(*rank_, log_);
  log_.line(decay_style_line(style_name(options_.rate.style)));
  if (options_.logging.profile != "none") {
    const bool writes = rank_->mesh().world().rank() == 0;
    profile_ =
        std::make_unique<RunProfile>(*rank_, options_.logging, writes ? trace_file(options_) : "");
  }
  if (rank_->mesh().world().size() > 1 && options_.logging.straggler_percent > 0) {
    stragglers_ = std::make_unique<Stragglers>(*rank_, options_.logging.straggler_percent);
  }
  if (options_.stop.check_replicas) {
    const std::string nothing = replica_problem(*rank_);
    compares_replicas_ = nothing.empty();
    if (!nothing.empty()) log_.warning(concat("--check-replicas does nothing: ", nothing));
  }
  if (inputs_.checkpoint != nullptr || !inputs_.foreign_model.empty() ||
      !options_.checkpoint.start.empty() || rank_->stage().teacher() != nullptr) {
    rank_->stage().await_initial_values();
  }
  if (inputs_.checkpoint != nullptr) {
    load();
  } else if (!inputs_.foreign_model.empty()) {
    load_foreign();
  } else {
    begin_anew();
  }
  if (Teacher* teacher = rank_->stage().teacher()) {
    teacher->load(options_.distillation.load);
    log_.line(concat(" the teacher is that of ", options_.distillation.load));
  }
  log_.line(datetime_line("after model, optimizer, and learning rate scheduler are built",
                          std::time(nullptr)));
}

void Trainer::open_data() {
  const Clock::time_point start = Clock::now();
  HostGroup& host = rank_->mesh().host();
  if (host.rank() == 0) {
    data_ = &inputs_.data(log_);
  }
  host.barrier("data", kLongSeconds);
  data_ = &inputs_.data(log_);
  check(options_.evaluation.skip_train || data_->source(Split::train) != nullptr,
        "there are no training data: give --data-path or --train-data-path, and a --split that "
        "leaves documents to training");
  timers_->add("train/valid/test-data-iterators-setup", seconds_since(start));
  log_.line(datetime_line("after dataloaders are built", std::time(nullptr)));
}

RunEnd Trainer::run() {
  log_.line(training_line());
  log_.line(datetime_line("before the start of training step", std::time(nullptr)));
  log_.begin(plan_, progress_, rank_->stream().device().description());
  bool stopped = false;
  if (!options_.evaluation.skip_train) {
    if (is_over()) {
      log_.line(concat("nothing is left to train: the checkpoint is of iteration ",
                       progress_.iteration, ", and ", plan_.last_iteration,
                       " were asked for; to train further ",
                       "give --extend and a larger --train-iters"));
    }
    stopped = train();
    if (!stopped) log_.line(datetime_line("after training is done", std::time(nullptr)));
  }
  if (epochs_ && options_.evaluation.skip_train) {
    log_.line("evaluation only mode, setting epoch to -1");
    evaluate_task(TaskEpochs::kNoTraining);
  }
  if (!stopped) {
    evaluate_at_end(Split::valid);
    if (!options_.evaluation.skip_train && progress_.iteration > 0) save();
    evaluate_at_end(Split::test);
  }
  await_saves();
  if (last_save_failed_) {  // once more: what was full may have room by now
    saved_.reset();
    save();
    await_saves();
  }
  if (profile_) log_.line(profile_->finish());
  if (stragglers_) log_.line(stragglers_->summary());
  log_.finish();
  if (stopped) log_.line(exit_line(progress_.iteration, std::time(nullptr)));
  if (last_save_failed_) log_.warning(not_saved());
  if (const std::string diverged = skipped_.at_end(); !stopped && !diverged.empty()) {
    throw std::runtime_error(diverged);
  }
  return last_save_failed_ ? RunEnd::save_failed : stopped ? RunEnd::stopped : RunEnd::finished;
}

FeedOptions Trainer::feed_options(std::int64_t first_sample) const {
  return {.micro_batch = plan_.micro_batch,
          .data_rank = rank_->mesh().coordinate(Axis::data),
          .data_ranks = plan_.data_ranks,
          .consumed_samples = first_sample,
          .vocabulary = plan_.rank.model.vocabulary.size,
          .reshape = plan_.lengths.reshape,
          .share = rank_->stage().sequence_share()};
}

bool Trainer::train() {
  BatchFeed feed(*data_, Split::train, feed_options(progress_.consumed_samples), rank_->stream());
  // A GPU works on a step while the host reads what the one before it found.
  const std::size_t ahead = rank_->stream().on_cuda() ? 1 : 0;
  end_epoch();  // a run may have ended between a save and its evaluation
  while (!is_over()) {
    if (epochs_) log_.line(epochs_->beginning_line(progress_.iteration));
    enqueue_step(feed);
    collect(ahead);
    if (after_step()) return true;
  }
  collect(0);
  return false;
}

void Trainer::enqueue_step(BatchFeed& feed) {
  const std::int64_t batch = plan_.batch.at(progress_.consumed_samples);
  const std::int64_t number = progress_.iteration + 1;
  rank_->set_position(number, "start of a step");
  if (profile_) profile_->begin(number);
  const auto next_batch = [&](std::int64_t) {
    const Timers::Scope loading = timers_->scope(2, "batch-generator");
    return feed.next(plan_.lengths.curriculum ? plan_.lengths.length(number) : 0);
  };
  {
    const Timers::Scope timer = timers_->scope(1, "forward-backward");
    rank_->enqueue_gradients(
        {.num_micro_batches = batch / (plan_.micro_batch * plan_.data_ranks),
         .batch = next_batch,
         .completed_steps = progress_.iteration,
         .kept_tokens = plan_.lengths.kept(number),
         .taught = progress_.iteration < options_.distillation.until.value_or(INT64_MAX)});
  }
  {
    const Timers::Scope timer = timers_->scope(1, "grads-all-reduce");
    rank_->enqueue_reduction();
  }
  {
    const Timers::Scope timer = timers_->scope(1, "optimizer");
    rank_->enqueue_update(plan_.schedule_units(number, progress_.consumed_samples, batch),
                          wants_to_stop());
  }
  progress_.iteration = number;
  progress_.consumed_samples += batch;
  progress_.consumed_tokens += plan_.lengths.tokens(number, batch);
  pending_.push_back({progress_, batch});
  if (profile_) log_.line(profile_->end(progress_.iteration));
}

bool Trainer::wants_to_stop() const {
  const StopOptions& stop = options_.stop;
  const bool late = stop.exit_minutes &&
                    seconds_since(inputs_.start) / 60 > static_cast<double>(*stop.exit_minutes);
  return late || inputs_.stop_requested() ||
         (!stop.kill_switch_file.empty() && std::filesystem::exists(stop.kill_switch_file));
}

// Reads outcomes until so many steps are left unread.
void Trainer::collect(std::size_t still_running) {
  // What is measured on the device as it is now belongs to the last step alone.
  const std::int64_t iteration = progress_.iteration;
  const bool needs_now = log_.wants_params_norm(iteration) || log_.wants_num_zeros(iteration) ||
                         options_.logging.optimizer_states_to_tensorboard;
  while (pending_.size() > (needs_now ? 0 : still_running)) take_outcome();
}

void Trainer::take_outcome() {
  rank_->set_position(progress_.iteration, "end of a step");
  const Pending step = pending_.front();
  pending_.pop_front();
  StepFacts facts;
  facts.progress = step.progress;
  facts.global_batch = step.global_batch;
  facts.outcome = rank_->outcome(static_cast<int>(pending_.size()));
  facts.memory = rank_->stream().memory()->statistics();
  const std::int64_t iteration = step.progress.iteration;
  if (log_.wants_params_norm(iteration)) facts.params_norm = parameter_norm(*rank_);
  if (log_.wants_num_zeros(iteration)) facts.num_zeros = gradient_zeros(*rank_);
  log_.step(facts);
  if (stragglers_) stragglers_->add(facts.outcome);
  report_rejected_choices();
  stop_seen_ = stop_seen_ || facts.outcome.stop;
  check_step(facts);
  if (options_.logging.optimizer_states_to_tensorboard && log_.at_tensorboard_interval(iteration)) {
    for (const auto& [name, value] : optimizer_statistics(*rank_)) {
      log_.scalar(name, value, step.progress);
    }
  }
  report_timers(iteration);
  if (log_.at_interval(iteration)) report_interval(iteration);
  report_graphs();
}

// Once, when it is decided.
void Trainer::report_graphs() {
  if (!graphs_reported_ && rank_->runner().graphs_settled()) {
    graphs_reported_ = true;
    if (const std::string verdict = rank_->runner().graph_verdict(); !verdict.empty())
      log_.line(verdict);
  }
}

// Whether the run can go on after what a step found. All ranks see the same numbers.
void Trainer::check_step(const StepFacts& facts) {
  const StepReport& update = facts.outcome.update;
  const std::int64_t iteration = facts.progress.iteration;
  const bool finite =
      std::isfinite(facts.outcome.loss) && (plan_.rank.dtype == DType::fp16 || !update.skipped);
  if (!finite && options_.stop.on_nan) {
    give_up(concat(
        "the loss of iteration ", iteration, " is ", facts.outcome.loss, " and its gradient norm ",
        update.grad_norm,
        ": stopped, as --check-for-nan-in-loss-and-grad asks. The weights are those of the "
        "iteration before; resume from the last checkpoint with a lower --lr or other data"));
  }
  const SkippedSteps::Finding found = skipped_.add(iteration, update);
  if (!found.warning.empty()) log_.warning(found.warning);
  if (!found.end.empty()) give_up(found.end);
}

// Nothing is saved: nothing was learnt since the last step that was not skipped.
void Trainer::give_up(const std::string& why) {
  await_saves();
  log_.finish();
  throw std::runtime_error(why);
}

// The first steps of a run that goes on show which of the stored choices cannot be used here.
void Trainer::report_rejected_choices() {
  const auto& rejected = rank_->stream().device().service<MatmulChoices>().rejected();
  if (inputs_.checkpoint != nullptr && rejected.size() > told_rejected_) {
    log_.warning(concat(
        rejected.size() - told_rejected_, " products are not computed as in the checkpoint's run (",
        inputs_.checkpoint->state().machine, "), the first of them ", rejected[told_rejected_],
        ": numbers agree to about 1e-5 from here on, not bit for bit"));
    told_rejected_ = rejected.size();
  }
}

// Means since the last line: the timers go on until that sets them back.
void Trainer::report_timers(std::int64_t iteration) {
  ++timed_steps_;
  const LoggingOptions& logging = options_.logging;
  if (logging.timers_to_tensorboard && logging.timing_level > 0 &&
      log_.at_tensorboard_interval(iteration)) {
    log_.timer_scalars(
        timers_->read(iteration_timers(), static_cast<double>(timed_steps_), rank_->mesh().host()),
        iteration);
  }
}

void Trainer::report_interval(std::int64_t iteration) {
  if (!memory_reported_) {
    memory_reported_ = true;
    log_memory(*rank_, iteration, log_);
  }
  timed_steps_ = 0;
  if (options_.logging.timing_level > 0) {
    log_.timers(timers_->collect(iteration_timers(), static_cast<double>(options_.logging.interval),
                                 rank_->mesh().host()));
  }
  if (stragglers_) {
    if (const std::string slow = stragglers_->report(); !slow.empty()) log_.warning(slow);
  }
  report_saves();
}

// What drifted is not saved: the last checkpoint is from before, or has passed this.
void Trainer::check_replicas() {
  collect(0);
  rank_->set_position(progress_.iteration, "comparison of replicas");
  if (const std::string drift = replica_drift(*rank_); !drift.empty()) {
    give_up(concat("after iteration ", progress_.iteration,
                   " ranks that hold the same weights do not have the same bits: ", drift,
                   ". Their memory or arithmetic is broken: leave the machine out and resume from "
                   "the last checkpoint"));
  }
  rank_->runner().clock().restart();
}

// Megatron's order: evaluate, save, leave.
bool Trainer::after_step() {
  const std::int64_t iteration = progress_.iteration;
  const bool remain = !is_over();
  if (const int bits = remain ? 0 : put_weights_on_grids(rank_->stage(), iteration); bits > 0) {
    log_.line(concat(" the weights of linear layers are on grids of ", bits, " bits now"));
  }
  if (compares_replicas_ && (iteration % *options_.stop.check_replicas == 0 || !remain)) {
    check_replicas();
  }
  if (evaluates(Split::valid) && iteration % options_.evaluation.interval == 0) {
    collect(0);
    const std::int64_t number = iteration / options_.evaluation.interval - 1;
    evaluate(Split::valid, number * evaluation_samples(), false);
  }
  end_epoch();
  const auto& interval = options_.stop.exit_interval;
  const bool leave = remain && (stop_seen_ || (interval && iteration % *interval == 0));
  const auto& save_interval = options_.checkpoint.save_interval;
  if (leave || (save_interval && iteration % *save_interval == 0)) {
    collect(0);
    await_saves();
    if (!leave) stop_after_failed_saves();
    save();
    rank_->runner().clock().restart();
  }
  return leave;
}

std::int64_t Trainer::evaluation_samples() const {
  return options_.evaluation.iterations * plan_.batch.global();
}

bool Trainer::evaluates(Split split) const {
  return options_.evaluation.iterations > 0 && data_->source(split) != nullptr;
}

void Trainer::evaluate(Split split, std::int64_t first_sample, bool at_end) {
  rank_->set_position(progress_.iteration, "evaluation");
  BatchFeed feed(*data_, split, feed_options(first_sample), rank_->stream());
  const std::int64_t each = plan_.batch.global() / (plan_.micro_batch * plan_.data_ranks);
  Rank::Losses losses;
  for (std::int64_t i = 0; i < options_.evaluation.iterations; ++i) {
    notice_stop();
    add_mean(losses,
             rank_->evaluate({.num_micro_batches = each,
                              .batch = [&](std::int64_t) { return feed.next(); },
                              .completed_steps = progress_.iteration}),
             options_.evaluation.iterations);
  }
  log_.evaluation({.iteration = progress_.iteration,
                   .losses = losses,
                   .final_samples = at_end ? evaluation_samples() : 0,
                   .test = split == Split::test},
                  progress_);
  rank_->runner().clock().restart();
}

// An evaluation may take longer than whoever asks to stop will wait: what was learnt is saved
// first.
void Trainer::notice_stop() {
  if (!stop_seen_ && rank_->mesh().host().any("wish to stop", wants_to_stop())) {
    stop_seen_ = true;
    if (!options_.evaluation.skip_train && progress_.iteration > 0) save();
  }
}

void Trainer::evaluate_at_end(Split split) {
  if (!epochs_ && evaluates(split)) {
    const std::int64_t before = progress_.iteration / options_.evaluation.interval;
    evaluate(split, split == Split::valid ? before * evaluation_samples() : 0, true);
  }
}

void Trainer::evaluate_task(std::int64_t epoch) {
  rank_->set_position(progress_.iteration, "evaluation of a task");
  epochs_->evaluate(epoch, progress_, feed_options(0), [&] { notice_stop(); });
  rank_->runner().clock().restart();
}

// Megatron's order: save, then evaluate. The epoch is marked once its checkpoint is on disk.
void Trainer::end_epoch() {
  const auto epoch = epochs_ ? epochs_->ended_by(progress_.iteration) : std::nullopt;
  if (!epoch || epochs_->evaluated(*epoch)) return;
  collect(0);
  stop_after_failed_saves();
  save();
  evaluate_task(*epoch);
  await_saves();
  epochs_->mark_best();
}

}  // namespace bloomery
