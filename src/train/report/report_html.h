// report.html: the curves and figures of a run in one file that opens in any browser.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/report/run_summary.h"

namespace bloomery {

std::string report_html(const std::vector<MetricsRow>& rows, const RunSummary& summary);

// Draws FOLDER/report.html from FOLDER/metrics.jsonl, which must be there, and returns its path.
std::filesystem::path write_report(const std::filesystem::path& folder);

}  // namespace bloomery
