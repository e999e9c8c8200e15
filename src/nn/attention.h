// Self-attention: the fused QKV projection, rotary positions, attention, the output projection.
#pragma once

#include "nn/model_options.h"
#include "ops/attention/attention.h"
#include "parallel/chunk_attention.h"
#include "parallel/parallel_linear.h"

namespace bloomery {

// What attention scores are multiplied by.
float score_scale(const SelfAttentionOptions& options);

class SelfAttention {
 public:
  SelfAttention(const std::string& name, int layer, const ModelOptions& options, const Mesh& mesh);

  // [tokens, hidden] to the same. With a cache in the context the tokens continue its sequences.
  // `relative`: the table of a bias by distance [buckets, heads held here], or null.
  Value operator()(Context& context, const LinearInput& x, Parameter* relative = nullptr) const;

  // The same of a chunk of a sequence of `length` tokens: first its queries, keys and values, then
  // either their result or, for later chunks, the keys alone.
  Value queries_and_keys(Context& context, const LinearInput& x, std::int64_t length) const;
  Value of_chunk(Context& context, const Value& qkv, KeysOfChunks& keys, std::int64_t chunk) const;
  void keep_keys_of(Context& context, const Value& qkv, KeysOfChunks& keys,
                    std::int64_t chunk) const;

  void collect(ParameterList& parameters) const;

 private:
  AttentionOptions attention_options(const Context& context, Parameter* relative) const;
  AttentionOptions of_some_heads(const Context& context, AttentionOptions options) const;
  Value attend(Context& context, const Value& qkv, const AttentionOptions& options) const;

  SelfAttentionOptions options_;
  PositionOptions positions_;
  int layer_;
  std::int64_t num_local_groups_, first_group_;
  std::string dropout_purpose_;
  ParallelLinear qkv_, projection_;
  NormOptions norm_;
  std::unique_ptr<Parameter> query_gain_, key_gain_;  // of norms of heads, or null
};

}  // namespace bloomery
