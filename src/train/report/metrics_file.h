// metrics.jsonl: what a run measured, one JSON object per line (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/report/log_file.h"
#include "train/report/status_lines.h"

namespace bloomery {

enum class MetricsKind {
  train,
  validation,
  test,
  start,       // of a process: a new run at iteration 0, else one that resumed there
  checkpoint,  // was committed
  sample,      // a text that the model wrote
};

struct MetricsRow {
  MetricsKind kind = MetricsKind::train;
  std::int64_t iteration = 0, samples = 0, tokens = 0;
  double time = 0;  // seconds since 1970
  // Further numbers by name, in order. One that is not finite is null in the file and NaN here.
  std::vector<std::pair<std::string, double>> values;
  ArgumentList texts = {};    // further texts by name, in order
  ArgumentList options = {};  // of a start

  std::optional<double> value(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty: none
};

MetricsRow metrics_row(const IterationReport& report, double now);
MetricsRow metrics_row(const EvaluationReport& report, std::int64_t consumed_samples,
                       std::int64_t consumed_tokens, double now);

std::string to_json(const MetricsRow& row);                          // without line end
std::optional<MetricsRow> metrics_from_json(std::string_view line);  // nothing: not such a row

// What a file says of the run as it is now, without rows that a later start says are measured again
// (MetricsFile moves such rows away, but may have found no room for that).
struct MetricsHistory {
  std::vector<MetricsRow> rows;
  std::int64_t damaged_lines = 0;  // left out; a killed run can leave one
};
// An absent file has no rows.
MetricsHistory read_metrics(const std::filesystem::path& path);

class MetricsFile {
 public:
  // Goes on after `iteration`. Rows behind it and the evaluations of a run that ended there are
  // measured again by a run that resumes from there; a run that starts at 0 measures all. They, and
  // damaged lines, are moved to the end of metrics-earlier.jsonl in the same folder: no row of an
  // earlier run is lost. Without an iteration rows are added to whatever is there.
  MetricsFile(const std::filesystem::path& path, std::optional<std::int64_t> iteration,
              const Warn& warn = {});
  void add(const MetricsRow& row);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  LogFile file_;
};

}  // namespace bloomery
