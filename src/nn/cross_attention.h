// Attention of a decoder to the output of an encoder: a projection for queries, one of the
// encoder's output for keys and values, attention, the output projection.
#pragma once

#include "nn/attention.h"

namespace bloomery {

struct CrossAttentionOptions {
  bool masked = true;  // padding of the encoder's sequences is not seen
};

class CrossAttention {
 public:
  CrossAttention(const std::string& name, int layer, const ModelOptions& options, const Mesh& mesh,
                 const CrossAttentionOptions& cross);

  // x [tokens, hidden] of the batch, `encoder` [tokens of its encoder, hidden], each those held
  // here. With a cache in the context keys and values are computed in the pass that has an encoder,
  // and kept for those without.
  Value operator()(Context& context, const LinearInput& x, const Value& encoder) const;
  void collect(ParameterList& parameters) const;

 private:
  AttentionPlaces places(const Batch& batch) const;

  SelfAttentionOptions options_;
  CrossAttentionOptions cross_;
  int layer_;
  std::int64_t num_local_groups_, first_group_;
  std::string dropout_purpose_;
  ParallelLinear query_, key_value_, projection_;
};

}  // namespace bloomery
