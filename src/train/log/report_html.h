// report.html: the curves and figures of a run in one file that opens in any browser.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/log/metrics_file.h"
#include "train/log/status_lines.h"

namespace bloomery {

struct RunSummary {
  std::string title;  // "GPT, 0.9M parameters"
  // Figures in the order in which they are shown: {"validation loss", "1.2345"}.
  std::vector<std::pair<std::string, std::string>> figures;
  ArgumentList options;
  std::optional<double> entropy_floor;  // the least loss that any model can have on the data
};

std::string report_html(const std::vector<MetricsRow>& rows, const RunSummary& summary);
void write_report(const std::filesystem::path& path, const std::vector<MetricsRow>& rows,
                  const RunSummary& summary);

}  // namespace bloomery
