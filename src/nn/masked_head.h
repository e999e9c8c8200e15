// The last block of BERT: the final norm, then a head that predicts the masked tokens and, if
// wanted, one that predicts from the first token whether two segments were swapped.
#pragma once

#include "nn/block.h"
#include "nn/model_options.h"
#include "nn/norm.h"
#include "nn/pooler.h"
#include "parallel/head_loss.h"

namespace bloomery {

class MaskedHead final : public Block {
 public:
  // The weight is [vocabulary, hidden], cut over tensor ranks from row `first_token` on; shared
  // with the embedding when tied.
  MaskedHead(const ModelOptions& options, const Mesh& mesh, std::shared_ptr<Parameter> weight,
             std::int64_t first_token);

  // Reports "lm loss" and, of a binary head, "sop loss", and leaves an empty state. Without labels
  // it leaves the logits [tokens, columns held here] of the batch's output rows, and those of the
  // segments with the metrics, if there are any.
  State forward(Context& context, State state) const override;
  void collect(ParameterList& parameters) const override;
  bool is_layer() const override { return false; }

 private:
  struct BinaryHead {
    WholeLinear pooler, output;
  };
  Value transformed(Context& context, const Value& x) const;

  Norm norm_;
  WholeLinear transform_;
  Norm transform_norm_;
  Activation activation_;
  std::shared_ptr<Parameter> weight_;
  std::unique_ptr<Parameter> bias_;
  std::unique_ptr<BinaryHead> binary_;  // or none
  HeadOptions options_;
};

}  // namespace bloomery
