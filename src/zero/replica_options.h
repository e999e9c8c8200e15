// How ranks that hold the same parameters, or shards of them, reduce gradients and gather values.
// What each holds is in comm/layout.h.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace bloomery {

struct ReplicaOptions {
  std::int64_t bucket_elements = 0;  // that are summed or gathered at once; 0: by the model's size
  // Beside the computation, or in its stream.
  bool overlap_reductions = true, overlap_gathers = true;
  // What gradients of micro-batches are kept and added up in: fp32, or bf16 beside values in bf16.
  DType grad_dtype = DType::fp32;
  // What they are rounded to before they are summed over ranks.
  DType reduce_dtype = DType::fp32;
};

}  // namespace bloomery
