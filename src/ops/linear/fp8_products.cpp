#include "ops/linear/fp8_products.h"

#include "autograd/features.h"

namespace bloomery {
namespace {

Fp8Code code(const Fp8Tensor& tensor) { return {tensor.format, tensor.inverse_scale}; }

Matmul product(const Tensor& a, const Fp8Tensor& of_a, const Tensor& b, const Fp8Tensor& of_b) {
  return {.a = a, .b = b, .transpose_b = true, .a_code = code(of_a), .b_code = code(of_b)};
}

}  // namespace

// A pass of training without a tape is the first one of a segment that is recomputed.
std::shared_ptr<Fp8Products> Fp8Products::of(const Context& context, const Parameter& weight,
                                             std::int64_t rows, bool with_bias) {
  Fp8Layers* const layers = context.features.fp8;
  Fp8Layer* const layer = layers != nullptr ? layers->find(weight, rows) : nullptr;
  if (layer == nullptr) {
    return nullptr;
  }
  const bool has_tape = context.tape != nullptr;
  return std::make_shared<Fp8Products>(
      *layer, has_tape || context.training,
      has_tape && layer->options().weight_gradients && !weight.frozen, with_bias);
}

Matmul Fp8Products::forward(Stream& stream, const Fp8Source& x) {
  x_ = layer_.input(stream, x, {.transposed = keep_input_}, record_);
  weight_ = layer_.weight(stream, {.rows = true}, record_);
  Matmul made = product(x_.rows, x_, weight_.rows, weight_);
  made.fast_sums = true;
  return made;
}

void Fp8Products::cast_gradient(Stream& stream, const Tensor& grad, Fp8Copies copies) {
  if (with_bias_ && keep_input_) {
    column_sums_ = Tensor::empty(stream, DType::fp32,
                                 {num_fp8_sum_parts(grad.shape().rows()), grad.shape().back()});
  }
  copies.rows = copies.rows || activation_ != Activation::none;
  grad_ = layer_.gradient(stream, {grad, activation_, before_}, copies, column_sums_);
  before_ = {};
}

Matmul Fp8Products::input_gradient(Stream& stream, const Tensor& grad) {
  cast_gradient(stream, grad, {.transposed = keep_input_});
  weight_ = layer_.weight(stream, {.rows = false, .transposed = true}, record_);
  return product(grad_.rows, grad_, weight_.transposed, weight_);
}

Matmul Fp8Products::weight_gradient(Stream& stream, const Tensor& grad) {
  if (!grad_.transposed) {  // nobody wanted the gradient of x
    cast_gradient(stream, grad, {.rows = false, .transposed = true});
  }
  return product(grad_.transposed, grad_, x_.transposed, x_);
}

}  // namespace bloomery
