// What a run that hangs or lost a rank says of all its ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/watch/status.h"

namespace bloomery {

// What is known of a rank when the run ends.
struct KnownRank {
  std::optional<RankStatus> status;  // none: it never told
  bool answered = false;             // after the failure; else the status is older
  bool asked = true;                 // else its silence says nothing
  double age = 0;                    // seconds since it was taken
};

struct WatchReport {
  std::string summary;  // who is missing, and where each rank stands: a line for those at one place
  std::string details;  // the last calls of each rank
};

WatchReport watch_report(const std::vector<KnownRank>& ranks);  // by rank

// Writes failure, summary and details to watchdog-DATE.txt in `folder` (empty: the working folder),
// and returns a line that says where they are, or why not.
std::string store_report(const std::string& failure, const WatchReport& report,
                         const std::filesystem::path& folder);

}  // namespace bloomery
