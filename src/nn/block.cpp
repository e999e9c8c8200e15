#include "nn/block.h"

#include <algorithm>

#include "ops/norm/norm.h"

namespace bloomery {

State settle(Context& context, State state) {
  if (state.pending) {
    state.stream = settle(context, state.stream, state.pending,
                          {.probability = state.pending_dropout, .key = state.pending_key});
    state.pending = {};
    state.pending_dropout = 0;
  }
  return state;
}

State run_blocks(Context& context, State state, std::span<const std::unique_ptr<Block>> blocks,
                 const RecomputeOptions& options) {
  using Method = RecomputeOptions::Method;
  check(options.num_layers >= 1, "recompute-num-layers is ", options.num_layers,
        "; it must be at least 1");
  const auto count = static_cast<int>(blocks.size());
  for (int first = 0; first < count;) {
    const bool repeated = options.method == Method::uniform ||
                          (options.method == Method::block && first < options.num_layers);
    const int length = options.method == Method::uniform ? options.num_layers : 1;
    const auto segment = blocks.subspan(first, std::min(length, count - first));
    const auto run = [segment](Context& inner, State inside) {
      for (const auto& block : segment) {
        inside = block->forward(inner, std::move(inside));
      }
      return inside;
    };
    state = repeated ? recompute(context, settle(context, std::move(state)), run)
                     : run(context, std::move(state));
    first += static_cast<int>(segment.size());
  }
  return state;
}

}  // namespace bloomery
