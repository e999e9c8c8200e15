// A layer that computes its sequences chunk by chunk (parallel/sequence_chunks.h), forward and
// backward.
#pragma once

#include "nn/attention.h"

namespace bloomery {

// The parts of a layer of which only attention sees more than a token at a time. All must outlive
// the backward pass.
struct ChunkedLayer {
  const SelfAttention& attention;
  std::function<LinearInput(Context&, State&)> before;  // what attention is applied to
  std::function<State(Context&, State, Value)> after;   // given what it gave
};

// Runs the layer on whole sequences. Only its input is kept for the backward pass, which computes
// the keys and values of all chunks first, then from the last to the first everything else of a
// chunk again, and its gradients. One tape entry.
State in_chunks(Context& context, State state, const ChunkedLayer& layer);

}  // namespace bloomery
