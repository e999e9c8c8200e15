#include "train/run/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/log.h"
#include "base/terminal.h"
#include "base/wrap.h"
#include "train/report/flops_profile.h"
#include "train/report/megatron_scalars.h"

namespace bloomery {
namespace {

using Clock = std::chrono::steady_clock;

bool quiet() { return least_logged() > LogLevel::info; }

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string python_value(const OptionRow& row) {
  std::string text = row.value_text();
  if (text == "true") return "True";
  if (text == "false") return "False";
  if (text == "none" || text.empty()) return "None";
  if (kind(row.field) == FieldKind::real && !is_list(row.field)) {
    return python_float(std::stod(text));
  }
  return text;
}

Recomputation recomputation(const PretrainOptions& options, const Plan& plan) {
  if (plan.rank.recompute.method != RecomputeOptions::Method::none) {
    return Recomputation::full;
  }
  const bool selective = options.recompute.granularity == RecomputeFlags::Granularity::selective;
  return selective ? Recomputation::selective : Recomputation::none;
}

ScalarChoice scalar_choice(const PretrainOptions& options) {
  const LoggingOptions& o = options.logging;
  return {.learning_rate = o.learning_rate_to_tensorboard,
          .loss_scale = o.loss_scale_to_tensorboard && options.precision.dtype == DType::fp16,
          .batch_size = o.batch_size_to_tensorboard,
          .world_size = o.world_size_to_tensorboard,
          .timers = o.timers_to_tensorboard,
          .memory = o.memory_to_tensorboard,
          .validation_perplexity = o.validation_ppl_to_tensorboard};
}

std::filesystem::path files_folder(const PretrainOptions& options) {
  return options.checkpoint.save.empty() ? options.logging.tensorboard_dir
                                         : options.checkpoint.save;
}

MonitorFolders monitor_folders(const LoggingOptions& o) {
  const auto folder = [](const MonitorFlags& flags) {
    return flags.enabled ? std::filesystem::path(flags.output) / flags.job
                         : std::filesystem::path();
  };
  return {.csv = folder(o.csv_monitor), .tensorboard = folder(o.tensorboard_monitor)};
}

template <class Wanted>
ArgumentList arguments_of(const OptionTable& table, const Wanted& wanted) {
  ArgumentList list;
  for (const OptionRow& row : table.rows()) {
    if (row.has_meaning() && wanted(row)) {
      std::string name = row.name;
      std::replace(name.begin(), name.end(), '-', '_');
      list.emplace_back(name, python_value(row));
    }
  }
  return list;
}

}  // namespace

ArgumentList argument_list(const OptionTable& table) {
  return arguments_of(table, [](const OptionRow&) { return true; });
}

ArgumentList changed_arguments(const OptionTable& table) {
  return arguments_of(table,
                      [](const OptionRow& row) { return row.value_text() != row.default_text; });
}

RunLog::RunLog(std::ostream* out, const PretrainOptions& options, const OptionTable& table)
    : out_(out), options_(options), table_(table) {
  if (out_ != nullptr) {
    live_ = std::make_unique<LiveWriter>(quiet() ? -1 : STDERR_FILENO);
  }
}

RunLog::~RunLog() = default;

void RunLog::line(const std::string& text) {
  if (out_ != nullptr && !text.empty() && !quiet()) {
    live_->clear();
    *out_ << text << '\n' << std::flush;
  }
}

void RunLog::own_line(const std::string& text) {
  const bool shown = out_ == &std::cout && is_terminal(STDOUT_FILENO);
  line(shown ? wrapped_lines(text, terminal_columns(STDOUT_FILENO)) : text);
}

void RunLog::note(const std::string& text) {
  if (out_ != nullptr) {
    live_->clear();
    Log().info(text);
  }
}

void RunLog::warning(const std::string& text) {
  if (out_ != nullptr) {
    live_->clear();
    Log().warning(text);
  }
}

Warn RunLog::warn() {
  return [this](const std::string& text) { warning(text); };
}

MetricsRow RunLog::row(MetricsKind kind, const Progress& progress) const {
  return {kind, progress.iteration, progress.consumed_samples, progress.consumed_tokens, now(), {}};
}

double RunLog::now() const {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void RunLog::begin(const Plan& plan, const Progress& start, const std::string& device) {
  plan_ = plan;
  shape_ = model_shape(plan.rank.model, plan.padded_vocabulary);
  if (const int decoder = Model::decoder_begin(plan.rank.model); decoder > 0) {
    shape_.causal = false;
    shape_.decoder_layers = Model::num_blocks(plan.rank.model) - decoder - 2;  // embedding and head
    shape_.decoder_length = options_.sentences.decoder_seq_length;
  }
  recomputation_ = recomputation(options_, plan);
  peak_flops_ = peak_flops(device, plan.rank.dtype);
  interval_ = {};
  if (out_ == nullptr) {
    return;
  }
  if (!options_.logging.tensorboard_dir.empty()) {
    events_ = std::make_unique<EventFile>(options_.logging.tensorboard_dir, now(), warn());
    add_argument_texts(*events_, argument_list(table_), start.iteration, now());
    events_->flush();
  }
  if (const MonitorFolders folders = monitor_folders(options_.logging); folders.any()) {
    monitors_ = std::make_unique<DeepspeedMonitors>(folders, now(), warn());
  }
  if (const std::filesystem::path folder = files_folder(options_); !folder.empty()) {
    metrics_ = std::make_unique<MetricsFile>(folder / "metrics.jsonl", start.iteration, warn());
    MetricsRow first = row(MetricsKind::start, start);
    first.values = {{"train_iterations", static_cast<double>(plan.last_iteration)},
                    {"parameters", static_cast<double>(plan.parameters.total)}};
    if (options_.logging.loss_floor) {
      first.values.emplace_back("loss_floor", *options_.logging.loss_floor);
    }
    first.texts = {{"title", concat(plan.rank.model.family, ", ",
                                    short_count(first.values[1].second), " parameters")},
                   {"device", device}};
    first.options = argument_list(table_);
    metrics_->add(first);
  }
}

bool RunLog::at_interval(std::int64_t iteration) const {
  return iteration % options_.logging.interval == 0;
}

bool RunLog::at_tensorboard_interval(std::int64_t iteration) const {
  return !options_.logging.tensorboard_dir.empty() &&
         iteration % options_.logging.tensorboard_interval == 0;
}

bool RunLog::wants_params_norm(std::int64_t iteration) const {
  return options_.logging.params_norm &&
         (at_interval(iteration) || at_tensorboard_interval(iteration));
}

bool RunLog::wants_num_zeros(std::int64_t iteration) const {
  return options_.logging.num_zeros_in_grad &&
         (at_interval(iteration) || at_tensorboard_interval(iteration));
}

std::int64_t RunLog::sequences(const StepFacts& facts) const {
  return facts.global_batch * plan_->lengths.sequences;
}

IterationReport RunLog::report(const StepFacts& facts, double seconds,
                               const Rank::Losses& losses) const {
  const StepReport& update = facts.outcome.update;
  const std::int64_t devices = plan_->rank.layout.degrees.num_ranks();
  const std::int64_t iteration = facts.progress.iteration;
  const std::int64_t length = plan_->lengths.counted_length(iteration);
  const Throughput rate =
      throughput(shape_, sequences(facts), length, recomputation_, seconds, devices);
  IterationReport r;
  r.iteration = iteration;
  r.train_iterations = plan_->train_iterations;
  r.consumed_samples = facts.progress.consumed_samples;
  r.consumed_tokens = facts.progress.consumed_tokens;
  r.elapsed_ms = seconds * 1e3;
  r.learning_rate = update.next_learning_rate;
  r.global_batch = facts.global_batch;
  r.losses = losses;
  r.loss_scale = update.loss_scale;
  if (!update.skipped) {  // as Megatron, which has no gradient to speak of then
    r.grad_norm = update.grad_norm;
    r.num_zeros = facts.num_zeros;
  }
  r.params_norm = facts.params_norm;
  if (plan_->lengths.curriculum) {
    r.curriculum_seqlen = plan_->lengths.length(iteration);
  }
  if (plan_->lengths.kept_tokens) {
    r.random_ltd_length = plan_->lengths.kept_tokens->schedule.at(iteration - 1);
  }
  r.seq_length = length;
  r.skipped = interval_.skipped;
  r.nans = interval_.nans;
  r.samples_per_second = rate.samples_per_second / static_cast<double>(plan_->lengths.sequences);
  r.tokens_per_second = rate.tokens_per_second;
  r.tokens_per_gpu_per_second = rate.tokens_per_gpu_per_second;
  r.tflops = rate.tflops;
  if (options_.logging.throughput) {
    r.model_tflops = rate.model_tflops;
  }
  r.reserved_bytes = static_cast<std::int64_t>(facts.memory.reserved_bytes);
  r.allocated_bytes = static_cast<std::int64_t>(facts.memory.used_bytes);
  return r;
}

// A skipped step counts as one without a number when its loss was none, as Megatron counts.
void RunLog::add_to_interval(const StepFacts& facts) {
  ++interval_.steps;
  interval_.seconds += facts.outcome.seconds;
  if (facts.outcome.update.skipped) {
    ++interval_.skipped;
    interval_.nans += std::isfinite(facts.outcome.loss) ? 0 : 1;
  } else {
    interval_.loss_sums.resize(facts.outcome.losses.size());
    for (std::size_t i = 0; i < interval_.loss_sums.size(); ++i) {
      interval_.loss_sums[i].name = facts.outcome.losses[i].name;
      interval_.loss_sums[i].value += facts.outcome.losses[i].value;
    }
    last_loss_ = facts.outcome.loss;
  }
}

void RunLog::step(const StepFacts& facts) {
  if (out_ == nullptr) {
    return;
  }
  const double seconds = std::max(1e-9, facts.outcome.seconds);
  add_to_interval(facts);
  const std::int64_t iteration = facts.progress.iteration;
  if (events_ && at_tensorboard_interval(iteration)) {
    add_iteration_scalars(*events_, report(facts, seconds, facts.outcome.losses),
                          scalar_choice(options_), plan_->data_ranks, now());
  }
  consumed_samples_ = facts.progress.consumed_samples;
  if (monitors_) {
    monitors_->step(report(facts, seconds, facts.outcome.losses), now());
  }
  if (options_.logging.flops_profiler && iteration == options_.logging.flops_step) {
    profile_flops(facts, seconds);
  }
  if (at_interval(iteration)) {
    print_interval(facts);
  }
  show_live(facts, seconds);
}

void RunLog::profile_flops(const StepFacts& facts, double seconds) {
  const std::string lines =
      flops_lines({.shape = shape_,
                   .iteration = facts.progress.iteration,
                   .sequences = sequences(facts),
                   .length = plan_->lengths.counted_length(facts.progress.iteration),
                   .parameters = plan_->parameters.total,
                   .devices = plan_->rank.layout.degrees.num_ranks(),
                   .recomputation = recomputation_,
                   .seconds = seconds});
  const std::filesystem::path file = options_.logging.flops_file.value_or("");
  if (file.empty()) {
    return line(lines);
  }
  LogFile text({.name = [file] { return file; }, .lines = true, .warn = warn()});
  text.add(lines + "\n");
  text.flush();
}

void RunLog::print_interval(const StepFacts& facts) {
  const double seconds = std::max(1e-9, interval_.seconds) / static_cast<double>(interval_.steps);
  Rank::Losses losses = interval_.loss_sums;
  for (NamedLoss& loss : losses) {
    loss.value /= static_cast<double>(interval_.steps - interval_.skipped);
  }
  const IterationReport r = report(facts, seconds, losses);
  const bool nvidia = options_.logging.format == LoggingOptions::Format::nvidia;
  line(iteration_line(r, nvidia ? LogFormat::nvidia : LogFormat::megatron_deepspeed));
  if (metrics_) metrics_->add(metrics_row(r, now()));
  if (events_) events_->flush();
  if (monitors_) monitors_->flush();
  interval_ = {};
}

void RunLog::show_live(const StepFacts& facts, double seconds) {
  if (!live_->active()) {
    return;
  }
  constexpr double kMemory = 0.9;  // of the running mean
  mean_seconds_ = mean_seconds_ == 0 ? seconds : kMemory * mean_seconds_ + (1 - kMemory) * seconds;
  const std::int64_t length = plan_->lengths.counted_length(facts.progress.iteration);
  const double flops = model_flops(shape_, sequences(facts), length) / mean_seconds_;
  LiveState state;
  state.iteration = facts.progress.iteration;
  state.train_iterations = plan_->last_iteration;
  state.loss = last_loss_.value_or(0);
  state.tokens_per_second = static_cast<double>(sequences(facts) * length) / mean_seconds_;
  if (peak_flops_) {
    state.utilisation = flops / *peak_flops_ / static_cast<double>(plan_->data_ranks);
  }
  state.memory_bytes = static_cast<std::int64_t>(facts.memory.reserved_bytes);
  state.seconds_left =
      mean_seconds_ * static_cast<double>(plan_->last_iteration - facts.progress.iteration);
  live_->update(state);
}

void RunLog::evaluation(const EvaluationReport& report, const Progress& progress) {
  if (out_ == nullptr) {
    return;
  }
  line(evaluation_lines(report));
  const std::int64_t tokens = progress.consumed_tokens;
  if (metrics_) metrics_->add(metrics_row(report, progress.consumed_samples, tokens, now()));
  if (monitors_ && !report.test) {
    monitors_->evaluation(report, progress.consumed_samples, now());
    monitors_->flush();
  }
  if (events_) {
    add_evaluation_scalars(*events_, report, progress.consumed_samples, tokens,
                           scalar_choice(options_), now());
    events_->flush();
  }
}

void RunLog::scalar(const std::string& tag, double value, const Progress& progress) {
  if (events_) {
    events_->add_scalar(tag, value, progress.iteration, now());
    events_->add_scalar(tag + " vs tokens", value, progress.consumed_tokens, now());
  }
}

void RunLog::timers(const std::vector<TimerReport>& reports) {
  if (monitors_) monitors_->timers(reports, consumed_samples_, now());
  const std::string& option = options_.logging.timing_option;
  line(timer_lines(reports, option == "max"   ? TimingOption::max
                            : option == "all" ? TimingOption::all
                                              : TimingOption::minmax));
}

void RunLog::timer_scalars(const std::vector<TimerReport>& reports, std::int64_t iteration) {
  for (const TimerReport& report : reports) {
    const double most = *std::max_element(report.rank_ms.begin(), report.rank_ms.end());
    if (events_ && most > 0) {
      events_->add_scalar(report.name + "-time", most / 1000, iteration, now());
    }
  }
}

bool RunLog::draw() {
  const Clock::time_point start = Clock::now();
  try {
    write_report(metrics_->path().parent_path());
    draw_failed_ = false;
  } catch (const std::exception& error) {
    if (!std::exchange(draw_failed_, true)) {
      warning(concat("report.html: ", error.what(),
                     "; training continues, and the report is drawn later"));
    }
  }
  drawn_ = Clock::now();
  drawing_seconds_ = seconds_between(start, drawn_);
  return !draw_failed_;
}

void RunLog::checkpoint(const Progress& progress) {
  if (!metrics_) {
    return;
  }
  metrics_->add(row(MetricsKind::checkpoint, progress));
  constexpr double kMostOfTime = 0.01;  // a long history takes time to draw
  if (drawing_seconds_ < kMostOfTime * seconds_between(drawn_, Clock::now())) {
    draw();
  }
}

void RunLog::finish() {
  if (live_) {
    live_->clear();
  }
  if (metrics_ && draw()) {
    own_line(
        concat("curves of this run: ", (metrics_->path().parent_path() / "report.html").string()));
  }
}

}  // namespace bloomery
