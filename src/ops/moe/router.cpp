#include "ops/moe/router.h"

#include "ops/arithmetic/arithmetic.h"
#include "ops/matmul/matmul.h"

namespace bloomery {

Value router_logits(Context& context, const Value& x, Parameter& weight) {
  const OpScope scope(context.stream, "router");
  const Shape& shape = weight.value.shape();
  check(shape.rank() == 2 && shape[1] == x.shape().back() && weight.value.dtype() == x.dtype(),
        "router: ", weight.name, shape, " cannot be applied to x ", x.shape());
  Value logits = context.output(accumulation_dtype(x.dtype()), {x.shape().rows(), shape[0]});
  launch(
      context.stream,
      Matmul{
          .a = x.data, .b = weight.value, .d = logits.data, .transpose_b = true, .b_lasts = true});
  if (context.tape == nullptr) {
    return logits;
  }
  const auto rounded = [dtype = x.dtype()](Tape& tape, const Slot& slot) {
    const Tensor& grad = tape.grad(slot);
    if (grad.dtype() == dtype) {
      return grad;
    }
    Tensor narrow = Tensor::empty(tape.stream(), dtype, grad.shape());
    launch(tape.stream(), ScaleAdd{.x = grad, .y = narrow});
    return narrow;
  };
  context.tape->record({.op = "router",
                        .input_gradient =
                            [rounded, x = x.slot, y = logits.slot, &weight](Tape& tape) {
                              if (const Sink sink = tape.sink(x)) {
                                launch(tape.stream(), Matmul{.a = rounded(tape, y),
                                                             .b = weight.value,
                                                             .d = sink.target,
                                                             .add = sink.add});
                              }
                            },
                        .weight_gradient =
                            [rounded, x = x.data, y = logits.slot, &weight](Tape& tape) {
                              const Sink sink = tape.sink(weight);
                              launch(tape.stream(), Matmul{.a = rounded(tape, y),
                                                           .b = x,
                                                           .d = sink.target,
                                                           .transpose_a = true,
                                                           .add = sink.add});
                            },
                        .parameters = {&weight},
                        .saved = {x.data},
                        .shape = logits.shape()});
  return logits;
}

}  // namespace bloomery
