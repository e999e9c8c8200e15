#include "ops/pooling/pooling.h"

namespace bloomery {

Value first_tokens(Context& context, const Value& x, const TokenRange& held) {
  const OpScope scope(context.stream, "first_tokens");
  const Batch& batch = context.batch;
  const std::int64_t rows =
      held.count == TokenRange::kRest ? batch.num_tokens() - held.first : held.count;
  check(x.shape().rank() == 2 && x.shape()[0] == rows, "first_tokens: x is ", x.shape(), ", but ",
        rows, " tokens of the batch are held");
  Value y = context.output(x.dtype(), {batch.num_sequences, x.shape()[1]});
  launch(context.stream,
         FirstTokens{.x = x.data, .y = y.data, .length = batch.length, .first_token = held.first});
  if (context.tape != nullptr) {
    context.tape->record(
        {.op = "first_tokens",
         .input_gradient =
             [x = x.slot, y = y.slot, length = batch.length, first = held.first](Tape& tape) {
               if (!tape.grad(y)) {
                 return;
               }
               if (const Sink sink = tape.sink(x)) {
                 launch(tape.stream(), FirstTokensGradient{.grad_y = tape.grad(y),
                                                           .grad_x = sink.target,
                                                           .length = length,
                                                           .first_token = first,
                                                           .add = sink.add});
               }
             },
         .shape = y.shape()});
  }
  return y;
}

Value tanh(Context& context, const Value& x) {
  const OpScope scope(context.stream, "tanh");
  Value y = context.output(x.dtype(), x.shape());
  launch(context.stream, TanhForward{.x = x.data, .y = y.data});
  if (context.tape != nullptr) {
    context.tape->record({.op = "tanh",
                          .input_gradient =
                              [x = x.slot, y = y.data, slot = y.slot](Tape& tape) {
                                if (!tape.grad(slot)) {
                                  return;
                                }
                                if (const Sink sink = tape.sink(x)) {
                                  launch(tape.stream(), TanhBackward{.grad_y = tape.grad(slot),
                                                                     .y = y,
                                                                     .grad_x = sink.target,
                                                                     .add = sink.add});
                                }
                              },
                          .saved = {y.data},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
