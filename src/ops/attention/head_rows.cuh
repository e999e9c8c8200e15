// Device-side addressing of attention: which keys a query sees, and the rows of one head.
#pragma once

#include "device/warp.cuh"
#include "ops/attention/attention.h"

namespace bloomery::attention_cuda {

struct KeyRange {
  int begin, end;
  __device__ __forceinline__ bool touches(int first, int last) const {
    return begin < last && end > first && begin < end;
  }
};

// Keys visible to query `query` < query_length. Both ends are non-decreasing in `query`.
__device__ __forceinline__ KeyRange visible_keys(const AttentionProblem& problem, int sequence,
                                                 int query) {
  const int key_length = static_cast<int>(problem.key_length);
  const int query_length = static_cast<int>(problem.query_length);
  const std::int64_t token = std::int64_t{sequence} * query_length + query;
  KeyRange range{0, key_length};
  if (problem.key_begin != nullptr) {
    range.begin = max(problem.key_begin[token], 0);
  }
  if (problem.key_end != nullptr) {
    range.end = min(range.end, problem.key_end[token]);
  }
  if (problem.causal) {
    const int own = query + key_length - query_length;
    range.begin = max(range.begin, static_cast<int>(problem.window_begin(own)));
    range.end = min(range.end, own + 1);
  }
  return range;
}

// The bias of one head's scores by distance: the place of a key less that of a query.
struct HeadBias {
  const float* middle;  // of distance 0
  int reach;

  __device__ __forceinline__ HeadBias(const AttentionProblem& problem, int head)
      : middle(static_cast<const float*>(problem.bias) + head * (2 * problem.bias_reach + 1) +
               problem.bias_reach),
        reach(static_cast<int>(problem.bias_reach)) {}
  __device__ __forceinline__ float at(int distance) const {
    return middle[max(min(distance, reach), -reach)];
  }
};

// Keys visible to any, and to every, query in [first, first + count); `first` < query_length.
__device__ __forceinline__ KeyRange seen_by_any(const AttentionProblem& problem, int sequence,
                                                int first, int count) {
  const int last = min(first + count, static_cast<int>(problem.query_length)) - 1;
  return {visible_keys(problem, sequence, first).begin, visible_keys(problem, sequence, last).end};
}
__device__ __forceinline__ KeyRange seen_by_every(const AttentionProblem& problem, int sequence,
                                                  int first, int count) {
  const int last = min(first + count, static_cast<int>(problem.query_length)) - 1;
  return {visible_keys(problem, sequence, last).begin, visible_keys(problem, sequence, first).end};
}

// One head of one sequence of a HeadView: row `position` starts at data + position * stride.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride;
  int length, head_dim;

  template <class Pointer>
  __device__ __forceinline__ HeadRows(Pointer view_data, std::int64_t token_stride,
                                      std::int64_t head_offset, int sequence, std::int64_t count,
                                      std::int64_t dim)
      : data(static_cast<T*>(view_data) + sequence * count * token_stride + head_offset),
        stride(token_stride),
        length(static_cast<int>(count)),
        head_dim(static_cast<int>(dim)) {}
};

template <class T>
__device__ __forceinline__ HeadRows<T> query_rows(const HeadView& view,
                                                  const AttentionProblem& problem, int sequence,
                                                  int head) {
  const int per_group = static_cast<int>(problem.num_heads / problem.num_groups);
  const std::int64_t offset =
      head / per_group * view.group_stride + head % per_group * problem.head_dim;
  return {view.data, view.token_stride, offset, sequence, problem.query_length, problem.head_dim};
}
template <class T>
__device__ __forceinline__ HeadRows<T> key_rows(const HeadView& view,
                                                const AttentionProblem& problem, int sequence,
                                                int group) {
  return {view.data, view.token_stride,  group * view.group_stride,
          sequence,  problem.key_length, problem.head_dim};
}
// Of the attention output or its gradient: [tokens, heads, head_dim].
template <class T, class Pointer>
__device__ __forceinline__ HeadRows<T> output_rows(Pointer data, const AttentionProblem& problem,
                                                   int sequence, int head) {
  return {data,
          problem.num_heads * problem.head_dim,
          head * problem.head_dim,
          sequence,
          problem.query_length,
          problem.head_dim};
}

}  // namespace bloomery::attention_cuda
