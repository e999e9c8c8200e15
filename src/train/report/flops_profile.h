// The operations of one iteration, as DeepSpeed's flops_profiler counts them up.
#pragma once

#include <string>

#include "train/report/throughput.h"

namespace bloomery {

struct FlopsProfile {
  ModelShape shape;
  std::int64_t iteration = 0, sequences = 0, length = 0;  // of the batch of all ranks
  std::int64_t parameters = 0, devices = 1;
  Recomputation recomputation = Recomputation::none;
  double seconds = 0;
};

// Lines without a final line end: totals, and the share of each kind of layer.
std::string flops_lines(const FlopsProfile& profile);

}  // namespace bloomery
