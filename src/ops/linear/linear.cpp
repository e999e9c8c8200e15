#include "ops/linear/linear.h"

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

struct Sizes {
  std::int64_t rows, in, out;
};

Sizes checked_sizes(const Value& x, const Parameter& weight, const Parameter* bias) {
  const std::int64_t in = x.shape().back();
  check(static_cast<bool>(weight.value), "linear: the weight ", weight.name,
        " has no value here: initialize or gather it first");
  check(weight.value.shape().rank() >= 2 && weight.value.shape().back() == in,
        "linear: ", weight.name, weight.value.shape(), " cannot be applied to x ", x.shape(),
        ": the last extents must be equal");
  check(weight.value.dtype() == x.dtype(), "linear: ", weight.name, " is ", weight.value.dtype(),
        ", x is ", x.dtype(), ": cast one of them");
  const std::int64_t out = weight.value.shape().rows();
  check(bias == nullptr || (bias->value.numel() == out && bias->value.dtype() == x.dtype()),
        "linear: the bias must have ", out, " elements of ", x.dtype(), " to go with ", weight.name,
        weight.value.shape());
  return {x.shape().rows(), in, out};
}

// g = dL/dy * f'(before), complete: consumers may have left it in two parts.
const Tensor& finished_grad(Tape& tape, const Slot& y) {
  if (y->grad && y->epilogue != 0) {
    const bool both = static_cast<bool>(y->epilogue_grad);
    const Tensor own = both ? y->grad : tape.sink(y).target;  // a copy if it was shared
    launch(tape.stream(), ActivationBackward{.grad_y = own,
                                             .x = y->epilogue_input,
                                             .grad_x = both ? y->epilogue_grad : own,
                                             .activation = static_cast<Activation>(y->epilogue),
                                             .add = both});
    if (!both) {
      y->epilogue_grad = y->grad;
    }
    y->grad = {};
    y->column_sums = {};
  }
  y->epilogue_input = {};  // deferred weight gradients need it no more
  const Tensor& grad = y->epilogue != 0 ? y->epilogue_grad : y->grad;
  check(static_cast<bool>(grad), "linear: no gradient arrived at an output of shape ", y->shape);
  return grad;
}

// dL/dx = g W, times the derivative that the producer of x offers, if any.
void input_gradient(Tape& tape, const Tensor& grad, const Parameter& weight, const Slot& x,
                    std::int64_t rows) {
  if (x == nullptr) {
    return;
  }
  const std::int64_t in = weight.value.shape().back();
  Matmul product{.a = grad, .b = weight.value, .m = rows, .n = in};
  if (x->epilogue == 0) {
    const Sink sink = tape.sink(x);
    product.d = sink.target;
    product.add = sink.add;
    return launch(tape.stream(), product);
  }
  product.derivative = static_cast<Activation>(x->epilogue);
  product.derivative_at = x->epilogue_input;
  const Sink sink = tape.epilogue_sink(x);
  if (!sink.add) {
    product.d = sink.target;
    if (x->wants_column_sums) {
      x->column_sums = Tensor::empty(tape.stream(), accumulation_dtype(x->dtype),
                                     {num_column_sum_parts(tape.stream(), rows, in), in});
      product.column_sums = x->column_sums;
    }
    return launch(tape.stream(), product);
  }
  const Tensor scratch = Tensor::empty(tape.stream(), x->dtype, x->shape);
  product.d = scratch;
  launch(tape.stream(), product);
  write_grad(tape.stream(), scratch, sink);
}

// How to make x again where it is not kept: as the caller says, or from what its activation was
// applied to, which its producer keeps.
Remake remake_input(const Context& context, const LinearInput& x) {
  const Slot& slot = x.value.slot;
  if (x.remake || slot == nullptr || slot->epilogue == 0 ||
      !context.stream.device().service<KeepPolicy>().remake_cheap_values) {
    return x.remake;
  }
  return [before = slot->epilogue_input,
          activation = static_cast<Activation>(slot->epilogue)](Stream& stream) {
    Tensor made = Tensor::empty(stream, before.dtype(), before.shape());
    launch(stream, ActivationForward{.x = before, .y = made, .activation = activation});
    return made;
  };
}

// dL/dW = g^T x and dL/db, the column sums of g, both in the accumulation dtype.
void weight_gradient(Tape& tape, const Slot& y, const Tensor& x, Parameter& weight, Parameter* bias,
                     const Sizes& sizes) {
  const Tensor& grad = finished_grad(tape, y);
  const Sink sink = tape.sink(weight);
  launch(tape.stream(), Matmul{.a = grad,
                               .b = x,
                               .d = sink.target,
                               .m = sizes.out,
                               .n = sizes.in,
                               .k = sizes.rows,
                               .transpose_a = true,
                               .add = sink.add});
  if (bias != nullptr) {
    const Sink bias_sink = tape.sink(*bias);
    const bool summed = static_cast<bool>(y->column_sums);
    launch(tape.stream(), ColumnSum{.x = summed ? y->column_sums : grad,
                                    .sums = bias_sink.target,
                                    .add = bias_sink.add});
  }
}

}  // namespace

Value linear(Context& context, const LinearInput& input, Parameter& weight, Parameter* bias,
             const LinearOptions& options) {
  const OpScope scope(context.stream, "linear");
  const Value& x = input.value;
  const Sizes sizes = checked_sizes(x, weight, bias);
  Value y = context.output(x.dtype(), {sizes.rows, sizes.out});
  Matmul product{.a = x.data,
                 .b = weight.value,
                 .d = y.data,
                 .m = sizes.rows,
                 .n = sizes.out,
                 .k = sizes.in,
                 .transpose_b = true,
                 .activation = options.activation};
  if (bias != nullptr && options.add_bias) {
    product.bias = bias->value;
  }
  Tensor before;
  if (options.activation != Activation::none && context.tape != nullptr) {
    before = Tensor::empty(context.stream, y.dtype(), y.shape());
    product.before = before;
    y.slot->epilogue = static_cast<int>(options.activation);
    y.slot->epilogue_input = before;
  }
  launch(context.stream, product);
  if (context.tape != nullptr) {
    ParameterList parameters{&weight};
    if (bias != nullptr) {
      parameters.push_back(bias);
      y.slot->wants_column_sums = true;
    }
    const Remake remake = remake_input(context, input);
    const Tensor kept = remake ? Tensor() : x.data;
    context.tape->record({.op = "linear",
                          .input_gradient =
                              [x = x.slot, y = y.slot, &weight, rows = sizes.rows,
                               first = options.before_input_gradient,
                               then = options.after_input_gradient](Tape& tape) {
                                if (first) {
                                  first(tape);
                                }
                                input_gradient(tape, finished_grad(tape, y), weight, x, rows);
                                if (then) {
                                  then(tape);
                                }
                              },
                          .weight_gradient =
                              [kept, remake, y = y.slot, &weight, bias, sizes](Tape& tape) {
                                const Tensor x = remake ? remake(tape.stream()) : kept;
                                weight_gradient(tape, y, x, weight, bias, sizes);
                              },
                          .parameters = std::move(parameters),
                          .saved = {kept, before},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
