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

  // The number of token i of a slot among all that the cache has room for.
  constexpr std::int64_t token(std::int64_t slot, std::int64_t i) const {
    if (places.pages == nullptr) {
      return slot * capacity + i;
    }
    const std::int64_t page = places.pages[slot * places.pages_per_slot + (i >> kCachePageLog2)];
    return (page << kCachePageLog2) + (i & (kCachePage - 1));
  }
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

// All tokens of the only sequence, the first ones of its slot, one after the other: kv [tokens,
// num_groups, 2, head_dim].
struct GatherFromCache {
  CacheProblem problem;
  ConstView cache;
  View kv;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GatherFromCache&);
void run(OnCuda, Stream&, const GatherFromCache&);

// As AppendToCache, and then token i of sequence b attends to the first lengths[b] + i + 1 tokens
// of its slot, of which a window leaves the last; rows with i >= counts[b] become zeros.
struct CachedAttention {
  CacheProblem problem;
  float scale = 1;
  std::int64_t window = 0;     // 0: none
  const void* bias = nullptr;  // of scaled scores, by distance (relative_bias.h); null: none
  std::int64_t bias_reach = 0;
  ConstView qkv;
  View cache;
  View out;       // [num_sequences * length, num_heads * head_dim]
  View arrivals;  // int32 [num_sequences * num_groups or more], zeros before and after

  // The first of `num_keys` keys that the last one's token sees.
  constexpr std::int64_t first_key(std::int64_t num_keys) const {
    return window > 0 && num_keys > window ? num_keys - window : 0;
  }
  // Of key `key`, for that token.
  template <class Real>
  constexpr Real bias_of(std::int64_t head, std::int64_t key, std::int64_t num_keys) const {
    return static_cast<const Real*>(
        bias)[head * (2 * bias_reach + 1) + distance_index(key - (num_keys - 1), bias_reach)];
  }
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const CachedAttention&);
void run(OnCuda, Stream&, const CachedAttention&);

}  // namespace bloomery
