// Softmax attention that never stores the score matrix: causal or bidirectional, grouped queries,
// sliding windows, documents and padding as key ranges, relative bias, dropout. Queries and keys
// are tokens with places, so that self-attention, cross-attention and parts of sequences on several
// ranks are one call.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/attention/relative_bias.h"
#include "ops/dropout/counter.h"

namespace bloomery {

struct AttentionOptions {
  std::int64_t num_heads = 1;   // query heads held here
  std::int64_t num_groups = 1;  // key/value heads held here; divides num_heads
  std::int64_t head_dim = 1;
  float scale = 1;  // of the scores, usually 1/sqrt(head_dim)
  bool causal = true;
  std::int64_t window = 0;      // causal: a query sees its own key and window - 1 before it; 0: all
  RelativeBias bias;            // added to the scaled scores
  DropoutOptions dropout;       // of the probabilities; active while training
  std::int64_t first_head = 0;  // global index of the first head held here (for dropout)
};

// Where queries and keys stand. A key is visible to a query of its sequence when its place is in
// [key_begin, key_end) of the query and, for causal attention, not after the query's place, nor a
// window or more before it.
struct AttentionPlaces {
  std::int64_t num_sequences = 0, query_length = 0, key_length = 0;
  Tensor samples;       // int64 [num_sequences], or by query token; null: no dropout
  Tensor query_places;  // int32 [query_length], or by query token; null: no dropout, keys in order
  // int32 [key_length], or by key token, in any order. Null: key k is at place k, and to causal
  // attention the last query is at the last key, whatever query_places say. Only these run on the
  // fastest kernels.
  Tensor key_places;
  Tensor key_begin, key_end;  // int32 by query token, non-decreasing in order; both null: all keys
};
// Of self-attention in which all keys of the batch's sequences are here and in order.
AttentionPlaces places_of(const Batch& batch);

// qkv: [tokens, num_groups, num_heads / num_groups + 2, head_dim], per group the query heads, then
// the key, then the value. Result: [tokens, num_heads, head_dim], flattened to two dimensions.
// Without `places`, those of the batch.
Value attention(Context& context, const Value& qkv, const AttentionPlaces& places,
                const AttentionOptions& options);
Value attention(Context& context, const Value& qkv, const AttentionOptions& options);

// The same for keys and values of other tokens. q: [query tokens, num_heads, head_dim]; kv: [key
// tokens, num_groups, 2, head_dim].
Value attention(Context& context, const Value& q, const Value& kv, const AttentionPlaces& places,
                const AttentionOptions& options);

// One of Q, K, V inside a larger buffer: element (sequence b, position s, head h, channel c) is at
// data[(b * length + s) * token_stride + head_offset(h) + c] with
// head_offset(h) = (h / heads_per_group) * group_stride + (h % heads_per_group) * head_dim.
struct HeadView {
  void* data = nullptr;  // of the first head
  std::int64_t token_stride = 0, group_stride = 0;
};

// Problem shared by forward and backward.
struct AttentionProblem {
  DType dtype = DType::fp32;
  std::int64_t num_sequences = 0, query_length = 0, key_length = 0;
  std::int64_t num_heads = 1, num_groups = 1, head_dim = 1;
  float scale = 1;
  // Key k is visible to query q iff k <= q + key_length - query_length; with key_places, iff its
  // place is not after the query's.
  bool causal = false;
  std::int64_t window =
      0;  // of causal attention: keys at this distance and farther are not visible
  // int32 [sequences * query_length], or null: query q sees keys at places [begin[q], end[q]) only.
  // Both are non-decreasing within a sequence, unless there are key_places. A query that sees no
  // key gets zeros and lse = -inf.
  const std::int32_t *key_begin = nullptr, *key_end = nullptr;
  std::uint32_t dropout_threshold = 0;  // 0: none
  RandomKey dropout_key = 0;
  TokenPlaces places;  // of the queries
  std::int64_t first_head = 0;
  // int32 [key_length], or [sequences * key_length]; null: key k is at place k.
  const std::int32_t* key_places = nullptr;
  bool key_place_per_token = false;
  // By distance (relative_bias.h), added to the products of queries and keys, before the scale. The
  // place of a query is that of the key which causal attention lets it see last.
  const void* bias = nullptr;
  std::int64_t bias_reach = 0;

  std::int64_t heads_per_group() const { return num_heads / num_groups; }
  // The first key that the window of a query lets it see.
  constexpr std::int64_t window_begin(std::int64_t query_place) const {
    return window > 0 ? query_place - window + 1 : 0;
  }
  // Of the keys of a sequence; null: they are their indices.
  constexpr const std::int32_t* places_of_keys(std::int64_t sequence) const {
    return key_place_per_token ? key_places + sequence * key_length : key_places;
  }
};

struct AttentionForward {
  AttentionProblem problem;
  HeadView q, k, v;
  View out;  // [sequences * query_length, num_heads * head_dim]
  View
      lse;  // accumulation dtype [sequences, num_heads, query_length]: log-sum-exp of scaled scores
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AttentionForward&);
void run(OnCuda, Stream&, const AttentionForward&);

// dQ, dK, dV are overwritten, in buffers laid out like Q, K, V, and so is grad_bias.
struct AttentionBackward {
  AttentionProblem problem;
  HeadView q, k, v;
  ConstView out, lse, grad_out;
  HeadView grad_q, grad_k, grad_v;
  View grad_bias;  // like the problem's bias; null: not wanted
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AttentionBackward&);
void run(OnCuda, Stream&, const AttentionBackward&);

// As Megatron and DeepSpeed count: all pairs of query and key, also those that a mask hides, and
// no scores that are formed again in backward.
double flops(const AttentionForward& forward);
double flops(const AttentionBackward& backward);

}  // namespace bloomery
