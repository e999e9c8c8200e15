#include "ops/activation/activation.h"

namespace bloomery {

const char* name(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::gelu_erf:
      return "gelu_erf";
    case Activation::silu:
      return "silu";
    case Activation::relu:
      return "relu";
    case Activation::squared_relu:
      return "squared_relu";
  }
  return "unknown";
}

Value activation(Context& context, const Value& x, Activation activation) {
  if (activation == Activation::none) {
    return x;
  }
  const OpScope scope(context.stream, "activation");
  Value y = context.output(x.dtype(), x.shape());
  launch(context.stream, ActivationForward{.x = x.data, .y = y.data, .activation = activation});
  if (context.tape != nullptr) {
    context.tape->record({.op = "activation",
                          .input_gradient =
                              [slot = x.slot, x = x.data, y = y.slot, activation](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                if (const Sink sink = tape.sink(slot)) {
                                  launch(tape.stream(), ActivationBackward{.grad_y = tape.grad(y),
                                                                           .x = x,
                                                                           .grad_x = sink.target,
                                                                           .activation = activation,
                                                                           .add = sink.add});
                                }
                              },
                          .saved = {x.data},
                          .shape = y.shape()});
  }
  return y;
}

Value gated_activation(Context& context, const Value& x, Activation activation) {
  const OpScope scope(context.stream, "gated_activation");
  const int rank = x.shape().rank();
  const bool separate = rank == 3 && x.shape()[1] == 2;
  check(
      separate || (rank == 2 && x.shape()[1] % 2 == 0), "gated_activation: x is ", x.shape(),
      ", but must be [tokens, 2, ffn] or [tokens, 2 * ffn]: gate and up projection of each token");
  const std::int64_t width = separate ? x.shape()[2] : x.shape()[1] / 2;
  Value y = context.output(x.dtype(), {x.shape()[0], width});
  launch(context.stream, GatedForward{.x = x.data, .y = y.data, .activation = activation});
  if (context.tape != nullptr) {
    context.tape->record({.op = "gated_activation",
                          .input_gradient =
                              [slot = x.slot, x = x.data, y = y.slot, activation](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                if (const Sink sink = tape.sink(slot)) {
                                  launch(tape.stream(), GatedBackward{.grad_y = tape.grad(y),
                                                                      .x = x,
                                                                      .grad_x = sink.target,
                                                                      .activation = activation,
                                                                      .add = sink.add});
                                }
                              },
                          .saved = {x.data},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
