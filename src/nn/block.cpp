#include "nn/block.h"

#include <algorithm>

#include "nn/norm.h"

namespace bloomery {

const Batch& batch_of(const Context& context, const State& state) {
  const Batch& batch = context.batch;
  return batch.encoder && !state.encoder ? *batch.encoder : batch;
}

State add_pending(Context& context, State state) {
  if (state.pending) {
    Context here = context.with_batch(batch_of(context, state));
    state.stream = add_pending(here, state.stream, state.pending, pending_dropout(here, state));
    state.pending = {};
    state.pending_dropout = 0;
  }
  return state;
}

namespace {

// The block's parameters are there while it runs, and again while its backward does.
State run_block(Context& context, const Block& block, State state) {
  if (context.access == nullptr) {
    return block.forward(context, std::move(state));
  }
  ParameterList used;
  block.collect(used);
  const auto on_tape = [&](const char* op, void (ParameterAccess::*call)(const ParameterList&)) {
    if (context.tape != nullptr) {
      context.tape->record(
          {.op = op, .input_gradient = [access = context.access, used, call](Tape&) {
             (access->*call)(used);
           }});
    }
  };
  context.access->acquire(used);
  on_tape("release_parameters", &ParameterAccess::release);
  state = block.forward(context, std::move(state));
  on_tape("acquire_parameters", &ParameterAccess::acquire);
  context.access->release(used);
  return state;
}

}  // namespace

State run_blocks(Context& context, State state, std::span<const std::unique_ptr<Block>> blocks,
                 const RecomputeOptions& options) {
  using Method = RecomputeOptions::Method;
  check(options.num_layers >= 1, "recompute-num-layers is ", options.num_layers,
        "; it must be at least 1");
  const auto longest =
      static_cast<std::size_t>(options.method == Method::uniform ? options.num_layers : 1);
  int layer = 0;  // of those in `blocks`
  for (std::size_t first = 0; first < blocks.size();) {
    std::size_t length = 1;
    while (length < longest && first + length < blocks.size() && blocks[first]->is_layer() &&
           blocks[first + length]->is_layer()) {
      ++length;
    }
    const auto segment = blocks.subspan(first, length);
    const auto run = [segment](Context& inner, State inside) {
      for (const auto& block : segment) {
        inside = run_block(inner, *block, std::move(inside));
      }
      return inside;
    };
    const bool itself = length == 1 && segment.front()->recomputes_itself(context);
    const bool repeated = segment.front()->is_layer() && !itself &&
                          (options.method == Method::uniform ||
                           (options.method == Method::block && layer < options.num_layers));
    state = repeated ? recompute(context, add_pending(context, std::move(state)), run)
                     : run(context, std::move(state));
    layer += segment.front()->is_layer() ? static_cast<int>(length) : 0;
    first += length;
  }
  return state;
}

}  // namespace bloomery
