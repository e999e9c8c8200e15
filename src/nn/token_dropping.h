// Random layerwise token dropping (random-LTD): a layer computes some tokens of each sequence, and
// the others skip it unchanged.
#pragma once

#include <vector>

#include "autograd/context.h"

namespace bloomery {

// What layers drop in training passes.
struct TokenDropping {
  std::vector<int> layers;  // that drop tokens
  std::int64_t kept = 0;    // tokens that they compute of each sequence; 0: all
  // Of the passes since the last begin_step: what a backward pass may still read.
  std::vector<std::shared_ptr<const Batch>> batches;

  void begin_step() { batches.clear(); }
  bool applies(const Context& context, int layer) const;
};

// Runs `layer` on the kept tokens, which are a function of the key and the samples of the batch.
State on_kept_tokens(Context& context, State state, RandomKey key, const Segment& layer);

}  // namespace bloomery
