// metrics.jsonl: what a run measured, one JSON object per line (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/log/append_file.h"
#include "train/log/status_lines.h"

namespace bloomery {

enum class MetricsKind { train, validation, test };

struct MetricsRow {
  MetricsKind kind = MetricsKind::train;
  std::int64_t iteration = 0, samples = 0, tokens = 0;
  double time = 0;  // seconds since 1970
  // Further numbers by name, in order. One that is not finite is null in the file and NaN here.
  std::vector<std::pair<std::string, double>> values;

  std::optional<double> value(std::string_view name) const;
};

MetricsRow metrics_row(const IterationReport& report, double now);
MetricsRow metrics_row(const EvaluationReport& report, std::int64_t consumed_samples,
                       std::int64_t consumed_tokens, double now);

std::string to_json(const MetricsRow& row);                          // without line end
std::optional<MetricsRow> metrics_from_json(std::string_view line);  // nothing: not such a row

struct MetricsHistory {
  std::vector<MetricsRow> rows;
  std::int64_t damaged_lines = 0;  // left out; a killed run can leave one
};
// An absent file has no rows.
MetricsHistory read_metrics(const std::filesystem::path& path);

class MetricsFile {
 public:
  // Goes on after `iteration`: rows behind it and the evaluations of a run that ended there, all of
  // which a run that resumes from there measures again, are taken out of the file, and so are
  // damaged lines.
  MetricsFile(const std::filesystem::path& path, std::int64_t iteration);
  void add(const MetricsRow& row) { file_.append(to_json(row) + "\n"); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace bloomery
