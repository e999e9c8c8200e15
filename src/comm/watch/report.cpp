#include "comm/watch/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

using State = CallRecord::State;

// "0-3, 7"
std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
      ++end;
    }
    text += concat(text.empty() ? "" : ", ", ranks[i]);
    text += end - i > 1 ? concat(end - i > 2 ? "-" : ", ", ranks[end - 1]) : "";
    i = end;
  }
  return text;
}

std::string plural(const std::vector<int>& ranks) {
  return concat(ranks.size() == 1 ? "rank " : "ranks ", list(ranks));
}

std::string text(const CallRecord& call) {
  const std::string number = call.number < 0 ? "" : concat("call ", call.number, " of ");
  return concat(call.text, " (", number, call.group, ", ranks ", list(call.members), ")");
}

// Where it is, without times, so that ranks at the same place say the same.
std::string place(const RankStatus& status) {
  if (const CallRecord* const waiting = status.waiting()) {
    return concat(waiting->position, ": in ", text(*waiting));
  }
  return status.calls.empty()
             ? concat(status.position, ": has made no call yet")
             : concat(status.position, ": in no call, after ", text(status.calls.back()));
}

std::string identity(int rank, const KnownRank& known) {
  return known.status ? concat("rank ", rank, " (", known.status->host, ", process ",
                               known.status->process, ")")
                      : concat("rank ", rank);
}

class Report {
 public:
  explicit Report(const std::vector<KnownRank>& ranks) : ranks_(ranks) {}

  std::string summary() const {
    std::string lines = culprits();
    lines += "where the ranks stand:\n";
    std::map<std::pair<int, std::string>, std::vector<int>> places;  // the first rank's order
    std::map<std::string, int> first;
    std::vector<int> unknown;
    for (int rank = 0; rank < size(); ++rank) {
      if (const KnownRank& known = at(rank); known.answered) {
        const std::string where = place(*known.status);
        const int order = first.try_emplace(where, rank).first->second;
        places[{order, where}].push_back(rank);
      } else if (!known.asked) {
        unknown.push_back(rank);
      }
    }
    for (const auto& [where, ranks] : places) {
      lines += concat("  ", plural(ranks), ": ", where.second, since(ranks), "\n");
    }
    if (!unknown.empty()) {
      lines += concat("  ", plural(unknown), ": nobody is left who would know\n");
    }
    return lines;
  }

  std::string details() const {
    std::string lines;
    for (int rank = 0; rank < size(); ++rank) {
      const KnownRank& known = at(rank);
      lines += concat("\n", identity(rank, known),
                      known.answered || !known.asked ? "" : " did not answer");
      if (!known.status) {
        lines += "\n";
        continue;
      }
      lines += concat(": ", known.answered ? "" : fmt::format("{:.1f} s before, ", known.age),
                      known.status->position, "\n");
      for (const CallRecord& call : known.status->calls) {
        constexpr const char* kStates[] = {"called", "waiting", "done"};
        lines += fmt::format("  {:>9.3f} s ago  {:<7} {:>9.3f} s  {}; {}\n", call.called_ago,
                             kStates[static_cast<int>(call.state)], call.waited, text(call),
                             call.position);
      }
    }
    return lines;
  }

 private:
  int size() const { return static_cast<int>(ranks_.size()); }
  const KnownRank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  // The longest wait of the ranks at one place.
  std::string since(const std::vector<int>& ranks) const {
    double longest = -1;
    for (const int rank : ranks) {
      const CallRecord* const waiting = at(rank).status->waiting();
      longest = std::max(longest, waiting == nullptr ? -1 : waiting->waited);
    }
    return longest < 0 ? "" : fmt::format(", for {:.1f} s", longest);
  }

  // A call in which another rank waits for this one.
  const CallRecord* awaited_in(int rank) const {
    for (const KnownRank& known : ranks_) {
      const CallRecord* const call =
          known.answered && known.status->rank != rank ? known.status->waiting() : nullptr;
      if (call != nullptr && std::ranges::find(call->members, rank) != call->members.end()) {
        return call;
      }
    }
    return nullptr;
  }

  std::string awaited(int rank) const {
    const CallRecord* const call = awaited_in(rank);
    return call == nullptr ? ""
                           : concat("; others wait for it in ", text(*call), ", ", call->position);
  }

  // Ranks that do not answer; else those that are in no call while others wait for them.
  std::string culprits() const {
    std::string lines;
    for (int rank = 0; rank < size(); ++rank) {
      if (const KnownRank& known = at(rank); !known.answered && known.asked) {
        lines += concat(identity(rank, known), " does not answer",
                        known.status ? fmt::format("; {:.1f} s ago it was at {}", known.age,
                                                   place(*known.status))
                                     : "",
                        awaited(rank), "\n");
      }
    }
    for (int rank = 0; rank < size() && lines.empty(); ++rank) {
      const KnownRank& known = at(rank);
      if (known.status && known.status->waiting() == nullptr && awaited_in(rank) != nullptr) {
        lines += concat(identity(rank, known), " did not come", awaited(rank), "\n");
      }
    }
    return lines.empty() ? "all ranks wait for each other: they do not make the same calls\n"
                         : lines;
  }

  const std::vector<KnownRank>& ranks_;
};

}  // namespace

WatchReport watch_report(const std::vector<KnownRank>& ranks) {
  const Report report(ranks);
  return {report.summary(), report.details()};
}

std::string store_report(const std::string& failure, const WatchReport& report,
                         const std::filesystem::path& folder) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32] = "";
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
  const std::filesystem::path path = folder / concat("watchdog-", date, ".txt");
  try {
    std::error_code failed;  // writing says it
    if (!folder.empty()) {
      std::filesystem::create_directories(folder, failed);
    }
    write_file(path, concat(failure, "\n", report.summary, report.details));
    return concat("the last calls of each rank: ", path.string());
  } catch (const std::exception& error) {  // no reason to hide what happened
    return concat("the last calls of each rank could not be written: ", error.what());
  }
}

}  // namespace bloomery
