// Progressive layer drop: in a step of training some layers do nothing, more of them as the run
// goes on and the deeper they lie.
#pragma once

#include "nn/block.h"

namespace bloomery {

// DeepSpeed's schedule. The last layers compute with a probability that falls from 1 to `theta`.
struct LayerDropOptions {
  double theta = 1, gamma = 0.001;

  // In the step behind so many: (1 - theta) e^(-gamma x) + theta, where x is one step behind, as in
  // DeepSpeed, which learns of a step after it has told the layers.
  double theta_after(std::int64_t steps) const;
};

// What layers do in training passes. All ranks and micro-batches of a step drop the same layers, so
// that no layout changes what is drawn and none waits for another.
struct LayerDropping {
  double theta = 1;             // 1: no layer is dropped
  std::int64_t step = 0;        // that draws
  std::int64_t num_layers = 1;  // of the model

  // That layer number `layer`, from 0 on, computes: 1 for the first, near theta for the last.
  double kept_probability(const Context& context, int layer) const;
  bool drops(const Context& context, int layer) const;
};

// What a dropped block does: the state passes by, and the gradients of its parameters get zeros.
State pass_by(Context& context, const Block& block, State state);

}  // namespace bloomery
