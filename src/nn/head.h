// The last block of a decoder: final norm, then the loss where the batch has labels, else logits.
#pragma once

#include "nn/block.h"
#include "nn/model_options.h"
#include "nn/norm.h"
#include "parallel/head_loss.h"

namespace bloomery {

class Head final : public Block {
 public:
  // The weight is [vocabulary, hidden], cut over tensor ranks from row `first_token` on; shared
  // with the embedding when tied.
  Head(const ModelOptions& options, const Mesh& mesh, std::shared_ptr<Parameter> weight,
       std::int64_t first_token);

  // Reports "lm loss" and leaves an empty state, or leaves the logits [tokens, columns held here]
  // of the batch's output rows.
  State forward(Context& context, State state) const override;
  void collect(ParameterList& parameters) const override;
  bool is_layer() const override { return false; }

 private:
  Norm norm_;
  std::shared_ptr<Parameter> weight_;
  HeadOptions options_;
};

}  // namespace bloomery
