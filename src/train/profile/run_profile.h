// `pretrain --profile`: a trace of the chosen steps of all ranks in a file, a process row for each,
// and the table of the first rank.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/plan/pretrain_options.h"
#include "train/profile/rank_profiler.h"

namespace bloomery {

class RunProfile {
 public:
  // Steps [first, last) of --profile_steps, which count from 1. Collective, as end() and finish().
  RunProfile(Rank& rank, const LoggingOptions& options, std::filesystem::path file);

  void begin(std::int64_t iteration);
  // After the last chosen step: as finish(). Other steps: an empty text.
  std::string end(std::int64_t iteration);
  // Writes the file and returns the table for people, once; an empty text when no step was traced.
  // Called at the end of a run: that may come before the last chosen step, and a file that could
  // not be written is tried again. Ranks other than the first have nothing to say.
  std::string finish();

 private:
  bool chosen(std::int64_t iteration) const { return first_ <= iteration && iteration < last_; }
  std::string gathered_trace();
  std::string table() const;
  std::string write(const std::string& trace);

  Rank& rank_;
  std::int64_t first_, last_;
  std::filesystem::path file_;
  bool written_ = false, failed_ = false;
  Trace trace_;
  RankProfiler profiler_;
};

// Where the trace goes: to --save, or else to --tensorboard-dir, or else here. Beside traces of
// earlier runs it is trace-2.json and so on.
std::filesystem::path trace_file(const PretrainOptions& options);

}  // namespace bloomery
