#include "nn/layer_dropping.h"

#include <algorithm>
#include <cmath>

namespace bloomery {

double LayerDropOptions::theta_after(std::int64_t steps) const {
  const auto x = static_cast<double>(std::max<std::int64_t>(steps - 1, 0));
  return steps == 0 ? 1 : (1 - theta) * std::exp(-gamma * x) + theta;
}

double LayerDropping::kept_probability(const Context& context, int layer) const {
  return context.training ? 1 - layer * (1 - theta) / static_cast<double>(num_layers) : 1;
}

bool LayerDropping::drops(const Context& context, int layer) const {
  const double kept = kept_probability(context, layer);
  if (kept >= 1) {
    return false;
  }
  const auto draw = static_cast<std::uint64_t>(step * num_layers + layer);
  return random_uniform(random_key(context.seed, "layer drop"), draw) >= kept;
}

State pass_by(Context& context, const Block& block, State state) {
  if (context.tape == nullptr) {
    return state;
  }
  ParameterList parameters;
  block.collect(parameters);
  context.tape->record({.op = "dropped_layer",
                        .weight_gradient =
                            [parameters](Tape& tape) {
                              for (Parameter* each : parameters) {
                                if (each->frozen) {
                                  continue;
                                }
                                if (const Sink sink = tape.sink(*each); !sink.add) {
                                  tape.stream().fill(sink.target.data(), 0, sink.target.bytes());
                                }
                              }
                            },
                        .parameters = parameters,
                        .shape = state.stream.shape()});
  return state;
}

}  // namespace bloomery
