// How two checkpoints differ, tensor by tensor, whatever layouts they were saved under.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/reader.h"

namespace bloomery {

struct TensorDifference {
  std::int64_t count = 0;   // elements whose bits differ
  double largest = 0;       // absolute difference; NaN when one is NaN and the other is not
  std::int64_t first = -1;  // the first that differs, in row-major order
};

// Both must have the tensor with one dtype and shape. Memory stays small, however large it is.
TensorDifference compare_tensor(const CheckpointReader& a, const CheckpointReader& b,
                                const std::string& name);

}  // namespace bloomery
