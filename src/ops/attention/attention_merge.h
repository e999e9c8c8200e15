// Attention over some keys and over others, put together to attention over all of them.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// Queries first, first + 1, ... of `sum` have seen more keys: `out` [queries, heads * head_dim] and
// `lse` [heads, queries] of these join what all keys before gave, `sum` [length, heads * head_dim]
// and `sum_lse` [heads, length], both in the accumulation dtype. With `start` there were none, and
// what stands there is overwritten.
struct AttentionMerge {
  ConstView out, lse;
  View sum, sum_lse;
  std::int64_t num_heads = 1, head_dim = 1;
  std::int64_t num_queries = 0, length = 0, first = 0;
  bool start = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AttentionMerge&);
void run(OnCuda, Stream&, const AttentionMerge&);

}  // namespace bloomery
