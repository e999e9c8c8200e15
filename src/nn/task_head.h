// The last block of a BERT that is tuned for a task: the final norm, the pooler, dropout, and a
// linear layer whose outputs are scores of classes, a number, or the score of a choice.
#pragma once

#include "nn/block.h"
#include "nn/model_options.h"
#include "nn/norm.h"
#include "nn/pooler.h"

namespace bloomery {

class TaskHead final : public Block {
 public:
  TaskHead(const ModelOptions& options, const Mesh& mesh);

  // Reports "lm loss", as Megatron calls it, leaves the outputs with the metrics and an empty
  // state. Without classes or scores in the batch it leaves the outputs [sequences, outputs].
  State forward(Context& context, State state) const override;
  void collect(ParameterList& parameters) const override;
  bool is_layer() const override { return false; }

 private:
  Value dropped(Context& context, const Value& pool) const;

  TaskHeadKind kind_;
  float dropout_;
  Norm norm_;
  WholeLinear pooler_, output_;
};

}  // namespace bloomery
