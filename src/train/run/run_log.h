// What a run tells: Megatron's lines on standard output, the live line of a terminal, TensorBoard
// events, metrics.jsonl and report.html. The first rank of a run has one; the others are silent.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "config/option_table.h"
#include "train/plan/plan.h"
#include "train/report/deepspeed_monitors.h"
#include "train/report/event_file.h"
#include "train/report/live_line.h"
#include "train/report/metrics_file.h"
#include "train/report/report_html.h"
#include "train/report/throughput.h"
#include "train/report/timer_lines.h"
#include "train/run/run_checkpoints.h"
#include "train/step/rank.h"

namespace bloomery {

// Name as Megatron has it, value as Python prints it, of every option with a meaning.
ArgumentList argument_list(const OptionTable& table);
// Of these the options whose value is not the default.
ArgumentList changed_arguments(const OptionTable& table);

// What one step was, besides its outcome.
struct StepFacts {
  Progress progress;  // after the step
  std::int64_t global_batch = 0;
  Rank::Outcome outcome;
  MemoryStatistics memory;
  std::optional<double> params_norm, num_zeros;
};

class RunLog {
 public:
  // `out` null: silent. Files go to --save, or else to --tensorboard-dir. With -q only warnings
  // are written.
  RunLog(std::ostream* out, const PretrainOptions& options, const OptionTable& table);
  ~RunLog();

  // One or more lines. An empty text says nothing.
  void line(const std::string& text);
  // A line that Megatron does not have: on a terminal it is cut into lines that fit.
  void own_line(const std::string& text);
  void note(const std::string& text);
  void warning(const std::string& text);

  // Before the first step: opens the files where the run starts or goes on. Nothing else can be
  // reported before.
  void begin(const Plan& plan, const Progress& start, const std::string& device);
  void step(const StepFacts& facts);
  bool wants_params_norm(std::int64_t iteration) const;
  bool wants_num_zeros(std::int64_t iteration) const;
  // Whether step() prints a line for this iteration.
  bool at_interval(std::int64_t iteration) const;
  bool at_tensorboard_interval(std::int64_t iteration) const;
  void evaluation(const EvaluationReport& report, const Progress& progress);
  void scalar(const std::string& tag, double value, const Progress& progress);
  void timers(const std::vector<TimerReport>& reports);
  // The slowest rank's to TensorBoard, in seconds.
  void timer_scalars(const std::vector<TimerReport>& reports, std::int64_t iteration);
  // One was committed. report.html shows it at once.
  void checkpoint(const Progress& progress);
  // The last word: report.html.
  void finish();

 private:
  struct Interval {          // since the last line
    Rank::Losses loss_sums;  // of steps that were not skipped
    std::int64_t steps = 0, skipped = 0, nans = 0;
    double seconds = 0;  // of the steps, by the device's clock
  };
  std::int64_t sequences(const StepFacts& facts) const;
  // Without losses where every step was skipped.
  IterationReport report(const StepFacts& facts, double seconds, const Rank::Losses& losses) const;
  void add_to_interval(const StepFacts& facts);
  void print_interval(const StepFacts& facts);
  void profile_flops(const StepFacts& facts, double seconds);
  void show_live(const StepFacts& facts, double seconds);
  // Draws report.html. What hinders it is said once, and no reason to end.
  bool draw();
  Warn warn();
  MetricsRow row(MetricsKind kind, const Progress& progress) const;
  double now() const;

  std::ostream* out_;
  const PretrainOptions& options_;
  const OptionTable& table_;
  std::optional<Plan> plan_;
  ModelShape shape_;
  Recomputation recomputation_ = Recomputation::none;
  std::optional<double> peak_flops_;
  std::unique_ptr<LiveWriter> live_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<DeepspeedMonitors> monitors_;
  std::unique_ptr<MetricsFile> metrics_;
  std::int64_t consumed_samples_ = 0;  // after the last step
  bool draw_failed_ = false;
  double drawing_seconds_ = 0;  // of the last time
  std::chrono::steady_clock::time_point drawn_;
  Interval interval_;
  double mean_seconds_ = 0;  // of recent steps, for the live line
  std::optional<double> last_loss_;
};

}  // namespace bloomery
