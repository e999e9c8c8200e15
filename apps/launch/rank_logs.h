// Where the output of each rank goes: to the terminal, to files, or both.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/launch/child.h"
#include "apps/launch/options.h"

namespace bloomery {

class RankLogs {
 public:
  // An Error where a folder cannot be made.
  explicit RankLogs(const LaunchOptions& options);

  // For start number `attempt` of a rank.
  void apply(ChildCommand& child, int rank, int local_rank, int attempt);

  // The first part of the names of --enable_each_rank_log, which all nodes share.
  const std::string& prefix() const { return prefix_; }

 private:
  // Of local ranks (-1: all others): 1 stdout, 2 stderr, 3 both.
  using Streams = std::map<int, int>;
  static Streams parse(const std::string& text, const char* flag);
  static int of(const Streams& streams, int local_rank);

  std::string output_folder_, each_rank_, prefix_, log_folder_, run_id_;
  std::filesystem::path run_folder_;  // made when it is needed
  Streams redirects_, tee_;
  std::vector<int> shown_;  // local ranks; none: all
};

}  // namespace bloomery
