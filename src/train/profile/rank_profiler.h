// Profiles chosen steps of a rank: its ops (StepProfiler), and on lanes of their own the executor's
// instructions and what its streams for communication did.
#pragma once

#include <optional>

#include "train/profile/instruction_clock.h"
#include "train/profile/step_profiler.h"
#include "train/step/rank.h"

namespace bloomery {

class RankProfiler {
 public:
  // As StepProfiler; the rank must outlive it.
  RankProfiler(Rank& rank, Trace& trace, bool shapes = false);
  ~RankProfiler();
  RankProfiler(const RankProfiler&) = delete;
  RankProfiler& operator=(const RankProfiler&) = delete;

  void begin_step(std::int64_t iteration);
  void end_step();
  TimeTable table() const { return steps_.table(); }

 private:
  struct Side {  // a stream beside the computation
    Stream* stream;
    int lane;
    std::unique_ptr<OpClock> clock;  // on CUDA
  };
  void add_instructions();
  void listen();
  void detach();

  Rank& rank_;
  Trace& trace_;
  StepProfiler steps_;
  InstructionClock instructions_;
  int instruction_lane_;
  std::vector<Side> sides_;
};

// The part of the time of sums of gradients, 0 to 1, in which a backward pass ran. None: there were
// no such sums.
std::optional<double> reductions_inside_backward(const Trace& trace);

}  // namespace bloomery
