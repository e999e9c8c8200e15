#include "train/report/deepspeed_monitors.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr const char* kGroup = "Train/Samples/";

// DeepSpeed's name of a timer of Megatron's; null: it has none.
const char* deepspeed_timer(const std::string& name) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"forward-compute", "elapsed_time_ms_forward"},
      {"backward-compute", "elapsed_time_ms_backward"},
      {"grads-all-reduce", "elapsed_time_ms_backward_allreduce"},
      {"optimizer", "elapsed_time_ms_step"}};
  for (const auto& [ours, theirs] : kNames) {
    if (name == ours) return theirs;
  }
  return nullptr;
}

}  // namespace

DeepspeedMonitors::DeepspeedMonitors(const MonitorFolders& folders, double now, const Warn& warn)
    : csv_(folders.csv), warn_(warn) {
  if (!csv_.empty()) {
    std::error_code failed;  // the files will say it
    std::filesystem::create_directories(csv_, failed);
  }
  if (!folders.tensorboard.empty()) {
    events_ = std::make_unique<EventFile>(folders.tensorboard, now, warn);
  }
}

LogFile& DeepspeedMonitors::table(const std::string& name) {
  std::unique_ptr<LogFile>& file = tables_[name];
  if (!file) {
    std::string full = kGroup + name;
    std::ranges::replace(full, '/', '_');
    file = std::make_unique<LogFile>(
        LogFile::Settings{.name = [path = csv_ / (full + ".csv")] { return path; },
                          .header = concat("step,", name, "\r\n"),
                          .lines = true,
                          .warn = warn_});
  }
  return *file;
}

void DeepspeedMonitors::add(const std::string& name, double value, std::int64_t samples,
                            double now) {
  if (!csv_.empty()) table(name).add(concat(samples, ",", python_float(value), "\r\n"));
  if (events_) events_->add_scalar(kGroup + name, value, samples, now);
}

void DeepspeedMonitors::step(const IterationReport& r, double now) {
  if (!r.losses.empty()) add("train_loss", r.losses.front().value, r.consumed_samples, now);
  add("lr", r.learning_rate, r.consumed_samples, now);
  if (r.loss_scale) add("loss_scale", *r.loss_scale, r.consumed_samples, now);
}

void DeepspeedMonitors::evaluation(const EvaluationReport& report, std::int64_t samples,
                                   double now) {
  if (!report.losses.empty()) add("eval_loss", report.losses.front().value, samples, now);
}

void DeepspeedMonitors::timers(const std::vector<TimerReport>& reports, std::int64_t samples,
                               double now) {
  for (const TimerReport& report : reports) {
    const char* const name = deepspeed_timer(report.name);
    const auto most = std::ranges::max_element(report.rank_ms);
    if (name != nullptr && most != report.rank_ms.end() && *most > 0) {
      add(name, *most, samples, now);
    }
  }
}

void DeepspeedMonitors::flush() {
  for (const auto& [name, file] : tables_) file->flush();
  if (events_) events_->flush();
}

}  // namespace bloomery
