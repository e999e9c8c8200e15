// Bytes on its device of the state that a rank trains: as arithmetic has it, from the numbers of
// its parameters and the stage of ZeRO, and as they are allocated.
#pragma once

#include "train/step/rank.h"

namespace bloomery {

struct StateMemory {
  std::int64_t parameters = 0;  // values that the model computes with
  std::int64_t gradients = 0;   // fp32, or bf16 by --grad-dtype
  std::int64_t optimizer = 0;   // master weights of 16-bit values, and moments
  std::int64_t total() const { return parameters + gradients + optimizer; }
};

StateMemory expected_state(Rank& rank);
StateMemory allocated_state(Rank& rank);

}  // namespace bloomery
