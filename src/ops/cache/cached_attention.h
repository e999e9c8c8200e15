// Causal self-attention of new tokens over the cached keys and values of their sequences.
#pragma once

#include "ops/attention/attention.h"
#include "ops/cache/cache.h"

namespace bloomery {

// qkv as for attention(), of the new tokens only: context.batch.length of each sequence, of which
// those after the cache's count are padding. Keeps the keys and values of the new tokens in layer
// `layer` of context.cache, then attends; rows of padding come out as zeros or as attention over
// the tokens before them, and influence nothing. No gradients, no dropout.
Value cached_attention(Context& context, const Value& qkv, int layer,
                       const AttentionOptions& options);

// What the two kernels share. `qkv` is [num_sequences * length, num_groups, heads_per_group + 2,
// head_dim]; `cache` is a layer of the cache.
struct CacheProblem {
  DType dtype = DType::fp32;
  std::int64_t num_sequences = 0, length = 0;  // of the batch
  std::int64_t capacity = 0;
  std::int64_t num_groups = 1, heads_per_group = 1, head_dim = 1;
  CachePlaces places;

  constexpr std::int64_t num_heads() const { return num_groups * heads_per_group; }
  constexpr std::int64_t qkv_stride() const {
    return num_groups * (heads_per_group + 2) * head_dim;
  }
  constexpr std::int64_t cache_stride() const {
    return num_groups * 2 * head_dim;
  }  // between tokens
};

// Copies the keys and values of token i of sequence b, i < counts[b], to place lengths[b] + i of
// its slot.
struct AppendToCache {
  CacheProblem problem;
  ConstView qkv;
  View cache;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AppendToCache&);
void run(OnCuda, Stream&, const AppendToCache&);

// The same, and then token i of sequence b attends to the first lengths[b] + i + 1 tokens of its
// slot; rows with i >= counts[b] become zeros.
struct CachedAttention {
  CacheProblem problem;
  float scale = 1;
  ConstView qkv;
  View cache;
  View out;       // [num_sequences * length, num_heads * head_dim]
  View arrivals;  // int32 [num_sequences * num_groups or more], zeros before and after
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const CachedAttention&);
void run(OnCuda, Stream&, const CachedAttention&);

}  // namespace bloomery
