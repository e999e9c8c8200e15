// The numbers that DeepSpeed's monitors record, under its names and in its files: `csv_monitor` and
// `tensorboard` of its configuration.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/report/event_file.h"
#include "train/report/status_lines.h"
#include "train/report/timer_lines.h"

namespace bloomery {

// Where monitors write; empty: the monitor is off.
struct MonitorFolders {
  std::filesystem::path csv, tensorboard;
  bool any() const { return !csv.empty() || !tensorboard.empty(); }
};

// A CSV file for each name, Train_Samples_lr.csv of Train/Samples/lr, with the columns step and lr.
// All steps are samples. A file that is there is gone on with.
class DeepspeedMonitors {
 public:
  // Makes the folders where they are missing. `now` is in seconds since 1970.
  DeepspeedMonitors(const MonitorFolders& folders, double now, const Warn& warn);

  void step(const IterationReport& report, double now);
  void evaluation(const EvaluationReport& report, std::int64_t samples, double now);
  // Of the passes since the last ones: the slowest rank's.
  void timers(const std::vector<TimerReport>& reports, std::int64_t samples, double now);
  void flush();

 private:
  // `name` behind Train/Samples/.
  void add(const std::string& name, double value, std::int64_t samples, double now);
  LogFile& table(const std::string& name);

  std::filesystem::path csv_;
  Warn warn_;
  std::map<std::string, std::unique_ptr<LogFile>> tables_;
  std::unique_ptr<EventFile> events_;
};

}  // namespace bloomery
