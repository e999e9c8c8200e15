// Runs the lists of all stages against each other, without data: whether they fit together, how
// many tapes each stage holds, and when each pass would happen.
#pragma once

#include <string>

#include "pipeline/schedule.h"

namespace bloomery {

// How long the passes of one stage's whole share of the model take; a chunk takes its part of it.
struct PassTimes {
  double forward = 1, backward_input = 1, backward_weight = 1;
};

struct TimedPass {
  Instruction instruction;
  double begin = 0, end = 0;
};

struct Simulation {
  std::string problem;          // the first found; empty: none
  std::vector<int> most_tapes;  // of each stage: tapes at a time
  // Of each stage, where transfers take no time and nobody waits for what he sent.
  std::vector<std::vector<TimedPass>> timeline;

  double duration() const;
  // The time that a stage waits, as a share of the time that it works: the mean of all stages.
  double bubble() const;
};

// `lists` are of stages 0, 1, ... with `num_chunks` chunks each; `training`: every forward has its
// backward. Transfers wait for each other as those of `threads` do: an exchange ends when all that
// it sends was received and all that it receives was sent; messages between two stages arrive in
// the order in which they were sent.
Simulation simulate(const std::vector<Instructions>& lists, int num_chunks = 1,
                    bool training = true, const PassTimes& times = {});

// A picture of the timeline, one row per stage.
std::string timeline_svg(const Simulation& simulation, int num_chunks);

}  // namespace bloomery
