// The first block of a model: rows of the tables of tokens, positions and token types, perhaps
// with noise, perhaps scaled, then dropout.
#pragma once

#include "nn/block.h"
#include "nn/model_options.h"
#include "ops/dropout/dropout.h"
#include "parallel/vocab_embedding.h"

namespace bloomery {

DropoutOptions embedding_dropout(const Context& context, float probability);

class Embedding final : public Block {
 public:
  // The stream starts in `stream_dtype`.
  Embedding(const ModelOptions& options, const Mesh& mesh, DType stream_dtype);
  // With the tables of another one. `dropout_purpose` tells the two apart.
  Embedding(const Embedding& other, std::string dropout_purpose);

  // Reads the batch, not the state. Token types that the batch does not give are 0.
  State forward(Context& context, State state) const override;
  void collect(ParameterList& parameters) const override { tables_->collect(parameters); }
  bool is_layer() const override { return false; }

  const VocabEmbedding& tables() const { return *tables_; }

 private:
  Value embedded(Context& context) const;
  void disturb(Context& context, const Value& embedded) const;

  std::shared_ptr<const VocabEmbedding> tables_;
  std::int64_t max_length_;  // 0: any
  bool has_types_;
  float dropout_;
  double noise_;  // NEFTune's alpha
  float factor_;  // of the embeddings
  std::string dropout_purpose_ = "embedding dropout";
};

}  // namespace bloomery
