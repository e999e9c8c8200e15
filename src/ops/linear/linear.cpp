#include "ops/linear/linear.h"

#include "autograd/features.h"
#include "ops/activation/activation.h"
#include "ops/arithmetic/sum_sink.h"
#include "ops/linear/fp8_products.h"
#include "ops/quantized/quantized_product.h"
#include "ops/quantized/quantized_weights.h"

namespace bloomery {
namespace {

struct Sizes {
  std::int64_t rows, in, out;
};

Sizes checked_sizes(const Value& x, const Parameter& weight, const QuantizedTensor* codes,
                    const Parameter* bias) {
  const std::int64_t in = x.shape().back();
  const Tensor& held = codes != nullptr ? codes->scales : weight.value;
  check(static_cast<bool>(held), "linear: the weight ", weight.name,
        " has no value here: initialize or gather it first");
  const Shape& shape = codes != nullptr ? weight.local_shape : weight.value.shape();
  check(shape.rank() >= 2 && shape.back() == in, "linear: ", weight.name, shape,
        " cannot be applied to x ", x.shape(), ": the last extents must be equal");
  check(held.dtype() == x.dtype(), "linear: ", weight.name, " is ", held.dtype(), ", x is ",
        x.dtype(), ": cast one of them");
  const std::int64_t out = shape.rows();
  check(bias == nullptr || (bias->value.numel() == out && bias->value.dtype() == x.dtype()),
        "linear: the bias must have ", out, " elements of ", x.dtype(), " to go with ", weight.name,
        shape);
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

// What the product reads: what the options' source makes, the values, or what codes stand for; of
// products in 8 bits nothing.
Tensor weight_in_use(Stream& stream, const Parameter& weight, const WeightSource& source,
                     bool fp8) {
  if (fp8) {
    return {};
  }
  return source ? source(stream) : value_of(stream, weight);
}

// dL/dx = g W, times the derivative that the producer of x offers, if any. Then x itself is made
// again by the way, where `x_again` is wanted.
void input_gradient(Tape& tape, const Tensor& grad, const Parameter& weight,
                    const WeightSource& source, Fp8Products* fp8, const Slot& x, Tensor* x_again,
                    const Sizes& sizes) {
  if (x == nullptr) {
    return;
  }
  const auto [rows, in, out] = sizes;
  const Tensor w = weight_in_use(tape.stream(), weight, source, fp8 != nullptr);
  Matmul product =
      fp8 != nullptr ? fp8->input_gradient(tape.stream(), grad) : Matmul{.a = grad, .b = w};
  product.m = rows;
  product.n = in;
  if (x->epilogue == 0) {
    const Sink sink = tape.sink(x);
    product.d = sink.target;
    product.add = sink.add;
    return launch(tape.stream(), product);
  }
  product.derivative = static_cast<Activation>(x->epilogue);
  product.derivative_at = x->epilogue_input;
  if (x_again != nullptr) {
    *x_again = Tensor::empty(tape.stream(), x->dtype, x->shape);
    product.activated = *x_again;
  }
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

Tensor activated(Stream& stream, const Tensor& before, Activation activation) {
  Tensor made = Tensor::empty(stream, before.dtype(), before.shape());
  launch(stream, ActivationForward{.x = before, .y = made, .activation = activation});
  return made;
}

// How to make x again where it is not kept: as the caller says, or from what its activation was
// applied to, which its producer keeps. On a GPU the pass that multiplies by the derivative reads
// that anyway, and making x by the way costs one write to memory, about a hundredth of a step; on
// a CPU it would cost a pass.
Rematerialize remake_input(const Context& context, const LinearInput& x) {
  const Slot& slot = x.value.slot;
  if (x.activation != Activation::none) {
    return [before = x.value.data, activation = x.activation](Stream& stream) {
      return activated(stream, before, activation);
    };
  }
  const bool by_the_way = context.stream.device().rules() == DeviceKind::cuda;
  if (x.rematerialize || slot == nullptr || slot->epilogue == 0 ||
      !(context.features.activations.remake_cheap_values || by_the_way)) {
    return x.rematerialize;
  }
  return [before = slot->epilogue_input, activation = static_cast<Activation>(slot->epilogue)](
             Stream& stream) { return activated(stream, before, activation); };
}

// dL/dW = g^T x and dL/db, the column sums of g, both in the accumulation dtype. `x` is null where
// `fp8` keeps it.
void weight_gradient(Tape& tape, const Slot& y, const Tensor& x, Parameter& weight, Parameter* bias,
                     Fp8Products* fp8, const Sizes& sizes) {
  const Tensor& grad = finished_grad(tape, y);
  const Sink sink = tape.sink(weight);
  const bool in_fp8 = fp8 != nullptr && fp8->keeps_input();
  Matmul product = in_fp8 ? fp8->weight_gradient(tape.stream(), grad)
                          : Matmul{.a = grad, .b = x, .transpose_a = true};
  product.d = sink.target;
  product.m = sizes.out;
  product.n = sizes.in;
  product.k = sizes.rows;
  product.add = sink.add;
  launch(tape.stream(), product);
  if (bias != nullptr) {
    const SumSink bias_sums(tape.stream(), tape.sink(*bias), accumulation_dtype(grad.dtype()));
    const Tensor& sums = in_fp8 ? fp8->column_sums() : y->column_sums;
    launch(tape.stream(),
           ColumnSum{.x = sums ? sums : grad, .sums = bias_sums.target(), .add = bias_sums.add()});
    bias_sums.finish();
  }
}

// The activation behind the product, and who will multiply by its derivative. Returns what it is
// applied to, where that is kept.
Tensor prepare_activation(Context& context, const LinearOptions& options, const Value& y,
                          Fp8Products* fp8, Matmul& product) {
  Tensor before;
  if (!options.apply_activation) {
    before = y.data;
  } else {
    product.activation = options.activation;
    if (context.tape != nullptr) {
      before = Tensor::empty(context.stream, y.dtype(), y.shape());
      product.before = before;
    }
  }
  if (fp8 != nullptr && fp8->keeps_input()) {
    fp8->follow(options.activation, before);
  } else if (context.tape != nullptr) {
    y.slot->epilogue = static_cast<int>(options.activation);
    y.slot->epilogue_input = before;
  }
  return context.tape != nullptr ? before : Tensor();
}

// The entry of a call on the tape. `before` is what the activation was applied to.
void record(Context& context, const LinearInput& input, const Value& y, const Tensor& before,
            Parameter& weight, Parameter* bias, const LinearOptions& options,
            const std::shared_ptr<Fp8Products>& fp8, const Sizes& sizes) {
  ParameterList parameters{&weight};
  if (bias != nullptr) {
    parameters.push_back(bias);
    y.slot->wants_column_sums = true;
  }
  const bool in_fp8 = fp8 && fp8->keeps_input();
  const bool frozen = weight.frozen && (bias == nullptr || bias->frozen);  // then x is not needed
  const Rematerialize rematerialize =
      in_fp8 || frozen ? Rematerialize() : remake_input(context, input);
  const Tensor kept = in_fp8 || rematerialize || frozen ? Tensor() : input.value.data;
  const auto again = rematerialize && !input.rematerialize ? std::make_shared<Tensor>() : nullptr;
  context.tape->record(
      {.op = "linear",
       .input_gradient =
           [x = input.value.slot, y = y.slot, &weight, source = options.weight, fp8, again, sizes,
            first = in_fp8 ? BackwardFn() : options.before_input_gradient,
            then = options.after_input_gradient](Tape& tape) {
             if (first) {
               first(tape);
             }
             input_gradient(tape, finished_grad(tape, y), weight, source, fp8.get(), x, again.get(),
                            sizes);
             if (fp8) {
               fp8->let_go();
             }
             if (then) {
               then(tape);
             }
           },
       .weight_gradient =
           [kept, rematerialize, again, y = y.slot, &weight, bias, fp8, sizes](Tape& tape) {
             const Tensor made = again ? std::exchange(*again, {}) : Tensor();
             const Tensor x = made ? made : rematerialize ? rematerialize(tape.stream()) : kept;
             weight_gradient(tape, y, x, weight, bias, fp8.get(), sizes);
           },
       .parameters = std::move(parameters),
       .saved = {in_fp8 ? fp8->kept_input() : kept, before},
       .shape = y.shape()});
}

// Where no gradient is wanted of few rows, codes are read as they are. Whether it is so.
bool multiply_codes(const Context& context, const Tensor& a, const QuantizedTensor* codes,
                    const Parameter* bias, const LinearOptions& options, const Tensor& y) {
  if (codes == nullptr || context.tape != nullptr ||
      !is_quantized_product(*codes, y.shape()[0], a.shape().back())) {
    return false;
  }
  QuantizedProduct product{
      .a = a, .codes = codes->codes, .scales = codes->scales, .format = codes->format, .d = y};
  product.bias = bias != nullptr && options.add_bias ? ConstView(bias->value) : ConstView();
  product.activation = options.apply_activation ? options.activation : Activation::none;
  launch(context.stream, product);
  return true;
}

}  // namespace

Value linear(Context& context, const LinearInput& input, Parameter& weight, Parameter* bias,
             const LinearOptions& options) {
  const OpScope scope(context.stream, "linear");
  const Value& x = input.value;
  const QuantizedTensor* const codes = weight.codes;
  const Sizes sizes = checked_sizes(x, weight, codes, bias);
  Value y = context.output(x.dtype(), {sizes.rows, sizes.out});
  const std::shared_ptr<Fp8Products> fp8 =
      Fp8Products::of(context, weight, sizes.rows, bias != nullptr);
  const Tensor a = fp8 || input.activation == Activation::none
                       ? x.data
                       : activated(context.stream, x.data, input.activation);
  if (multiply_codes(context, a, codes, bias, options, y.data)) {
    return y;
  }
  const Tensor w = weight_in_use(context.stream, weight, options.weight, fp8 != nullptr);
  Matmul product = fp8 ? fp8->forward(context.stream, {a, input.activation, {}})
                       : Matmul{.a = a,
                                .b = w,
                                .transpose_b = true,
                                .b_lasts = codes == nullptr && !options.weight};
  product.d = y.data;
  product.m = sizes.rows;
  product.n = sizes.out;
  product.k = sizes.in;
  if (bias != nullptr && options.add_bias) {
    product.bias = bias->value;
  }
  Tensor before;
  if (options.activation != Activation::none) {
    before = prepare_activation(context, options, y, fp8.get(), product);
  }
  launch(context.stream, product);
  if (fp8) {
    fp8->let_go();
  }
  if (context.tape != nullptr) {
    check(codes == nullptr || weight.frozen, "linear: ", weight.name,
          ", which is held in fewer bits, cannot learn");
    record(context, input, y, before, weight, bias, options, fp8, sizes);
  }
  return y;
}

}  // namespace bloomery
