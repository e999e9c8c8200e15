// Self-attention: one product for Q, K and V, rotary positions, attention, one product back.
#pragma once

#include "nn/model_options.h"
#include "ops/attention/attention.h"
#include "parallel/parallel_linear.h"

namespace bloomery {

class SelfAttention {
 public:
  SelfAttention(const std::string& name, int layer, const ModelOptions& options, const Mesh& mesh);

  // [tokens, hidden] to the same. With a cache in the context the tokens continue its sequences.
  Value operator()(Context& context, const LinearInput& x) const;
  void collect(ParameterList& parameters) const;

 private:
  Value of_whole_sequences(Context& context, const Value& qkv, AttentionOptions options) const;

  SelfAttentionOptions options_;
  PositionOptions positions_;
  int layer_;
  std::int64_t num_local_groups_, first_group_;
  std::string dropout_purpose_;
  ParallelLinear qkv_, projection_;
};

}  // namespace bloomery
