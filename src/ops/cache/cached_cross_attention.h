// Attention of new tokens to what an encoder read: keys and values that are computed once for a
// text and kept in the cache (Cache::set_texts).
#pragma once

#include "ops/attention/attention.h"
#include "ops/cache/cache.h"

namespace bloomery {

// q [tokens, num_heads, head_dim] of the new tokens, as for cached_attention(). `kv` [places of all
// texts, num_groups, 2, head_dim] is kept as layer `layer` of context.cache; a null one: it was.
// Each token attends to all keys of its sequence's text. Rows of padding become zeros. No
// gradients, no dropout.
Value cached_cross_attention(Context& context, const Value& q, const Tensor& kv, int layer,
                             const AttentionOptions& options);

// Token i of row b attends to keys [0, text_lengths[t]) of text t = texts[slots[b]]; with
// i >= counts[b] it becomes zeros.
struct CachedCrossAttention {
  DType dtype = DType::fp32;
  std::int64_t num_rows = 0, length = 0;  // of the batch
  std::int64_t text_length = 0;           // places of each text
  std::int64_t num_groups = 1, heads_per_group = 1, head_dim = 1;
  float scale = 1;
  const std::int32_t *slots = nullptr, *counts = nullptr;        // by row
  const std::int32_t *texts = nullptr, *text_lengths = nullptr;  // by slot, by text
  ConstView q;   // [num_rows * length, num_groups, heads_per_group, head_dim]
  ConstView kv;  // [texts, text_length, num_groups, 2, head_dim]
  View out;      // like q

  constexpr std::int64_t num_heads() const { return num_groups * heads_per_group; }
  constexpr std::int64_t key_stride() const { return num_groups * 2 * head_dim; }
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const CachedCrossAttention&);
void run(OnCuda, Stream&, const CachedCrossAttention&);

}  // namespace bloomery
