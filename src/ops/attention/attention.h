// Softmax attention that never stores the score matrix: self-attention on the fused QKV buffer
// (causal or bidirectional, grouped queries, documents and padding as key ranges, dropout) and
// cross-attention.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/dropout/counter.h"

namespace bloomery {

struct AttentionOptions {
  std::int64_t num_heads = 1;   // query heads held here
  std::int64_t num_groups = 1;  // key/value heads held here; divides num_heads
  std::int64_t head_dim = 1;
  float scale = 1;  // of the scores, usually 1/sqrt(head_dim)
  bool causal = true;
  DropoutOptions dropout;       // of the probabilities; active while training
  std::int64_t first_head = 0;  // global index of the first head held here (for dropout)
};

// qkv: [tokens, num_groups, num_heads / num_groups + 2, head_dim], per group the query heads, then
// the key, then the value. Result: [tokens, num_heads, head_dim], flattened to two dimensions.
// Lengths and key ranges come from the batch.
Value attention(Context& context, const Value& qkv, const AttentionOptions& options);

// q: [tokens, num_heads, head_dim]; kv: [key tokens, num_groups, 2, head_dim] with key_length keys
// per sequence. The batch's key ranges, when present, are those of the queries.
Value cross_attention(Context& context, const Value& q, const Value& kv, std::int64_t key_length,
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
  bool causal = false;  // key k is visible to query q iff k <= q + key_length - query_length
  // int32 [sequences * query_length], or null: query q sees keys in [begin[q], end[q]) only. Both
  // are non-decreasing within a sequence. A query that sees no key gets zeros and lse = -inf.
  const std::int32_t *key_begin = nullptr, *key_end = nullptr;
  std::uint32_t dropout_threshold = 0;  // 0: none
  RandomKey dropout_key = 0;
  DropoutPlaces places;  // of the queries
  std::int64_t first_head = 0;

  std::int64_t heads_per_group() const { return num_heads / num_groups; }
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

// dQ, dK, dV are overwritten, in buffers laid out like Q, K, V.
struct AttentionBackward {
  AttentionProblem problem;
  HeadView q, k, v;
  ConstView out, lse, grad_out;
  HeadView grad_q, grad_k, grad_v;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AttentionBackward&);
void run(OnCuda, Stream&, const AttentionBackward&);

// As Megatron and DeepSpeed count: all pairs of query and key, also those that a mask hides, and
// no scores that are formed again in backward.
double flops(const AttentionForward& forward);
double flops(const AttentionBackward& backward);

}  // namespace bloomery
