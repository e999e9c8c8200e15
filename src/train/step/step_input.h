// What a step, or an evaluation, is computed from.
#pragma once

#include <cstdint>
#include <functional>

#include "autograd/batch.h"

namespace bloomery {

// This rank's part of the micro-batch of a number, on the device; asked for once each, in rising
// order.
using BatchSource = std::function<Batch(std::int64_t micro_batch)>;

struct StepInput {
  std::int64_t num_micro_batches = 0;
  BatchSource batch;
  // How many steps the run has taken, which grids and dropped layers follow.
  std::int64_t completed_steps = 0;
  std::int64_t kept_tokens = 0;  // of each sequence, by the layers of random-LTD; 0: all
  bool taught = true;            // a step learns from the teacher, where there is one
};

}  // namespace bloomery
