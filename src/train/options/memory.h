// Bytes that training takes on one rank, estimated by part before anything is allocated.
#pragma once

#include <cstdint>

#include "models/model.h"

namespace bloomery {

// Of the whole model; padding of the vocabulary is not counted.
struct ParameterCount {
  std::int64_t per_layer = 0, total = 0;
};
ParameterCount count_parameters(const ModelOptions& options);

struct MemoryEstimate {
  std::int64_t parameters = 0;   // values that the model computes with
  std::int64_t gradients = 0;    // fp32
  std::int64_t optimizer = 0;    // master weights of 16-bit values, and moments
  std::int64_t activations = 0;  // what a micro-batch keeps for its backward pass
  std::int64_t total() const { return parameters + gradients + optimizer + activations; }
};
MemoryEstimate estimate_memory(const ModelOptions& options, const RecomputeOptions& recompute,
                               DType dtype, int num_moments, std::int64_t tokens);

}  // namespace bloomery
