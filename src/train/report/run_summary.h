// What the rows of metrics.jsonl say of a run as a whole: the figures, the history and the options
// that report.html shows beside its curves.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/report/metrics_file.h"

namespace bloomery {

struct RunEvent {
  std::string time;  // of the machine that reads, "2024-01-31 12:00:00"
  std::int64_t iteration = 0;
  std::string what;  // "resumed on H200"
};

struct RunSummary {
  std::string title;                    // "gpt, 0.9M parameters"
  ArgumentList figures;                 // in the order in which they are shown
  std::vector<RunEvent> events;         // starts, and the last checkpoints
  ArgumentList samples;                 // prompts and what the model wrote last
  ArgumentList options;                 // of the last start
  std::optional<double> entropy_floor;  // the least loss that any model can have on the data
};

RunSummary run_summary(const std::vector<MetricsRow>& rows);

}  // namespace bloomery
