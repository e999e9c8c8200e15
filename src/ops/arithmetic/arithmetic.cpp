#include "ops/arithmetic/arithmetic.h"

namespace bloomery {

void write_grad(Stream& stream, const Tensor& grad, const Sink& sink, float factor) {
  if (sink) {
    launch(stream, ScaleAdd{.x = grad, .y = sink.target, .factor = factor, .add = sink.add});
  }
}

Value add(Context& context, const Value& a, const Value& b) {
  const OpScope scope(context.stream, "add");
  check(a.shape() == b.shape() && a.dtype() == b.dtype(), "add: ", a.dtype(), a.shape(), " and ",
        b.dtype(), b.shape(), " must have one shape and dtype");
  Value y = context.output(a.dtype(), a.shape());
  launch(context.stream, ScaleAdd{.x = a.data, .y = y.data});
  launch(context.stream, ScaleAdd{.x = b.data, .y = y.data, .add = true});
  if (context.tape != nullptr) {
    context.tape->record({.op = "add",
                          .input_gradient =
                              [a = a.slot, b = b.slot, y = y.slot](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                write_grad(tape.stream(), tape.grad(y), tape.sink(b));
                                if (!tape.adopt(a, y)) {
                                  write_grad(tape.stream(), tape.grad(y), tape.sink(a));
                                }
                              },
                          .shape = y.shape()});
  }
  return y;
}

namespace {

Value scale_to(Context& context, const Value& x, float factor, DType dtype, const char* op) {
  const OpScope scope(context.stream, op);
  Value y = context.output(dtype, x.shape());
  launch(context.stream, ScaleAdd{.x = x.data, .y = y.data, .factor = factor});
  if (context.tape != nullptr) {
    context.tape->record({.op = op,
                          .input_gradient =
                              [x = x.slot, y = y.slot, factor](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                write_grad(tape.stream(), tape.grad(y), tape.sink(x), factor);
                              },
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace

Value scale(Context& context, const Value& x, float factor) {
  return scale_to(context, x, factor, x.dtype(), "scale");
}

Value cast(Context& context, const Value& x, DType dtype) {
  return x.dtype() == dtype ? x : scale_to(context, x, 1, dtype, "cast");
}

}  // namespace bloomery
