// Tensor maps: how the copy engine of sm_90 finds the rows of a head.
#pragma once

#include <cuda.h>

#include "ops/attention/attention.h"

namespace bloomery::attention_cuda {

// cuTensorMapEncodeTiled of the driver, which is not linked.
decltype(&cuTensorMapEncodeTiled) tensor_map_encoder();

// Whether the kernels for sm_90a can run this problem on this GPU; views that vector_access() also
// accepts have tensor maps.
bool sm90_applies(Stream& stream, const AttentionProblem& problem);

struct HeadsToMap {
  HeadView view;
  std::int64_t length, heads_per_group;  // keys and values have one head per group
  int box_rows, box_columns;             // of one copy
};

// Coordinates: channel, position, head within its group, group, sequence. Positions and channels
// past the end read as zeros.
CUtensorMap map_heads(const AttentionProblem& problem, const HeadsToMap& heads);

}  // namespace bloomery::attention_cuda
