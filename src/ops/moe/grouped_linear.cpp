#include "ops/moe/grouped_linear.h"

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

GroupViews views(const RowGroups& groups) {
  return {groups.offsets, groups.tiles ? ConstView(groups.tiles) : ConstView()};
}

// dL/dy * f'(before): what arrived already multiplied, or made so here.
const Tensor& finished_grad(Tape& tape, const Slot& y) {
  if (y->epilogue != 0 && y->grad) {
    check(!y->epilogue_grad, "grouped_linear: its output has one use");
    const Tensor own = tape.sink(y).target;  // a copy if it was shared
    launch(tape.stream(), ActivationBackward{.grad_y = own,
                                             .x = y->epilogue_input,
                                             .grad_x = own,
                                             .activation = static_cast<Activation>(y->epilogue)});
    y->epilogue_grad = y->grad;
    y->grad = {};
  }
  const Tensor& grad = y->epilogue != 0 ? y->epilogue_grad : y->grad;
  check(static_cast<bool>(grad), "grouped_linear: no gradient arrived at an output of shape ",
        y->shape);
  return grad;
}

void input_gradient(Tape& tape, const Slot& x, const Slot& y, const Parameter& weight,
                    const RowGroups& groups) {
  const Tensor& grad = finished_grad(tape, y);
  y->epilogue_input = {};
  if (x == nullptr) {
    return;
  }
  GroupedProduct product{.a = grad,
                         .b = weight.value,
                         .n = x->shape.back(),
                         .k = grad.shape().back(),
                         .groups = views(groups)};
  if (x->epilogue != 0) {
    product.derivative = static_cast<Activation>(x->epilogue);
    product.derivative_at = x->epilogue_input;
  }
  const Sink sink = x->epilogue != 0 ? tape.epilogue_sink(x) : tape.sink(x);
  check(!sink.add, "grouped_linear: its input has one use");
  product.d = sink.target;
  launch(tape.stream(), product);
}

// Calls make(where to, whether to add) with numbers of the accumulation dtype, which are rounded
// where the gradient is kept in a narrower one.
template <class Make>
void add_in_full(Tape& tape, const Sink& sink, const Make& make) {
  const DType dtype = accumulation_dtype(sink.target.dtype());
  if (sink.target.dtype() == dtype) {
    return make(sink.target, sink.add);
  }
  const Tensor full = Tensor::empty(tape.stream(), dtype, sink.target.shape());
  make(full, false);
  write_grad(tape.stream(), full, sink);
}

void weight_gradient(Tape& tape, const Tensor& x, const Slot& y, Parameter& weight, Parameter* bias,
                     const RowGroups& groups) {
  const Tensor& grad = finished_grad(tape, y);
  add_in_full(tape, tape.sink(weight), [&](const View& d, bool add) {
    launch(tape.stream(),
           GroupedWeightGradient{.a = grad, .b = x, .d = d, .groups = views(groups), .add = add});
  });
  if (bias != nullptr) {
    const std::int64_t num_groups = weight.value.shape()[0];
    add_in_full(tape, tape.sink(*bias), [&](View sums, bool add) {
      sums.shape = {num_groups, sums.numel() / num_groups};
      launch(tape.stream(),
             GroupedColumnSum{.x = grad, .sums = sums, .groups = views(groups), .add = add});
    });
  }
}

}  // namespace

Value grouped_linear(Context& context, const Value& x, Parameter& weight, Parameter* bias,
                     const RowGroups& groups, const GroupedLinearOptions& options) {
  const OpScope scope(context.stream, "grouped_linear");
  const Shape& shape = weight.value.shape();
  const std::int64_t in = x.shape().back();
  check(shape.rank() >= 3 && shape.back() == in && shape[0] == groups.offsets.numel() - 1 &&
            weight.value.dtype() == x.dtype(),
        "grouped_linear: ", weight.name, " ", weight.value.dtype(), shape,
        " cannot be applied to x ", x.dtype(), x.shape(), " in ", groups.offsets.numel() - 1,
        " groups");
  const std::int64_t out = shape.numel() / shape[0] / in;
  Value y = context.output(x.dtype(), {x.shape().rows(), out});
  GroupedProduct product{.a = x.data,
                         .b = weight.value,
                         .d = y.data,
                         .n = out,
                         .k = in,
                         .transpose_b = true,
                         .groups = views(groups),
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
    }
    context.tape->record(
        {.op = "grouped_linear",
         .input_gradient = [x = x.slot, y = y.slot, &weight,
                            groups](Tape& tape) { input_gradient(tape, x, y, weight, groups); },
         .weight_gradient = [x = x.data, y = y.slot, &weight, bias, groups](
                                Tape& tape) { weight_gradient(tape, x, y, weight, bias, groups); },
         .parameters = std::move(parameters),
         .saved = {x.data, before},
         .shape = y.shape()});
  }
  return y;
}

// As if every row were of some group.
double flops(const GroupedProduct& k) {
  return 2.0 * static_cast<double>(k.a.rows()) * static_cast<double>(k.n) *
         static_cast<double>(k.k);
}
double flops(const GroupedWeightGradient& k) {
  return 2.0 * static_cast<double>(k.a.rows()) * static_cast<double>(k.a.columns()) *
         static_cast<double>(k.b.columns());
}

}  // namespace bloomery
