// The first block of a decoder: rows of the token table and of the position table, then dropout.
#pragma once

#include "nn/block.h"
#include "nn/model_options.h"
#include "parallel/vocab_embedding.h"

namespace bloomery {

class Embedding final : public Block {
 public:
  // The stream starts in `stream_dtype`.
  Embedding(const ModelOptions& options, const Mesh& mesh, DType stream_dtype);

  State forward(Context& context, State state) const override;  // reads the batch, not the state
  void collect(ParameterList& parameters) const override { tables_.collect(parameters); }
  bool is_layer() const override { return false; }

  const VocabEmbedding& tables() const { return tables_; }

 private:
  VocabEmbedding tables_;
  std::int64_t max_length_;  // 0: any
  float dropout_;
};

}  // namespace bloomery
