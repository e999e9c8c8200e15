// Runs the lists of all stages against each other, without data: whether they fit together, and how
// many tapes each stage holds.
#pragma once

#include <string>

#include "pipeline/schedule.h"

namespace bloomery {

struct Simulation {
  std::string problem;          // the first found; empty: none
  std::vector<int> most_tapes;  // of each stage: tapes at a time
};

// `lists` are of stages 0, 1, ... with `num_chunks` chunks each; `training`: every forward has its
// backward. Transfers wait for each other as those of `threads` do: an exchange ends when all that
// it sends was received and all that it receives was sent; messages between two stages arrive in
// the order in which they were sent.
Simulation simulate(const std::vector<Instructions>& lists, int num_chunks = 1,
                    bool training = true);

}  // namespace bloomery
