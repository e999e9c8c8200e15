// The last block: final norm, then either the loss or the logits.
#pragma once

#include "nn/block.h"
#include "nn/norm.h"
#include "parallel/head_loss.h"

namespace bloomery {

class Head {
 public:
  // The weight is [vocabulary, hidden], cut over tensor ranks; shared with the embedding when
  // tied.
  Head(std::int64_t hidden, const NormOptions& norm, std::shared_ptr<Parameter> weight,
       const HeadOptions& options);

  HeadLoss loss(Context& context, State state) const;
  // [tokens, columns held here]; with `rows` (int32, indices of tokens) of those tokens only, and
  // then without a tape.
  Value logits(Context& context, State state, const Tensor& rows = {}) const;
  void collect(ParameterList& parameters) const;

 private:
  Norm norm_;
  std::shared_ptr<Parameter> weight_;
  HeadOptions options_;
};

}  // namespace bloomery
