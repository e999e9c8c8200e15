#include "ops/moe/mix.h"

namespace bloomery {

Value mix(Context& context, const Value& a, const Value& b, const Value& logits, MixKind kind) {
  const OpScope scope(context.stream, "mix");
  const std::int64_t per_token = kind == MixKind::softmax ? 2 : 1;
  check(a.shape() == b.shape() && logits.shape().rows() == a.shape().rows() &&
            logits.shape().back() == per_token && a.dtype() == b.dtype() &&
            a.dtype() == logits.dtype(),
        "mix: a ", a.dtype(), a.shape(), ", b ", b.dtype(), b.shape(), ", logits ", logits.dtype(),
        logits.shape());
  Value y = context.output(a.dtype(), a.shape());
  launch(context.stream,
         MixForward{.a = a.data, .b = b.data, .logits = logits.data, .y = y.data, .kind = kind});
  if (context.tape != nullptr) {
    context.tape->record({.op = "mix",
                          .input_gradient =
                              [a, b, logits, y = y.slot, kind](Tape& tape) {
                                const Sink to_a = tape.sink(a.slot), to_b = tape.sink(b.slot);
                                const Sink to_logits = tape.sink(logits.slot);
                                launch(tape.stream(), MixBackward{.grad = tape.grad(y),
                                                                  .a = a.data,
                                                                  .b = b.data,
                                                                  .logits = logits.data,
                                                                  .grad_a = to_a.target,
                                                                  .grad_b = to_b.target,
                                                                  .grad_logits = to_logits.target,
                                                                  .add_a = to_a.add,
                                                                  .add_b = to_b.add,
                                                                  .add_logits = to_logits.add,
                                                                  .kind = kind});
                              },
                          .saved = {a.data, b.data, logits.data},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
