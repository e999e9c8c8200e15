// The three products of one call of a linear layer, of operands in 8 bits.
#pragma once

#include "autograd/context.h"
#include "ops/fp8/fp8_layers.h"
#include "ops/matmul/matmul.h"

namespace bloomery {

// Each function gives a product with its operands, to be completed (d, epilogue) and launched; they
// belong to the call, which lives from forward to the weight gradient.
class Fp8Products {
 public:
  // Null where the layer computes in 16 bits. `with_bias`: its gradient will be wanted.
  static std::shared_ptr<Fp8Products> of(const Context& context, const Parameter& weight,
                                         std::int64_t rows, bool with_bias);
  Fp8Products(Fp8Layer& layer, bool record, bool keep_input, bool with_bias)
      : layer_(layer), record_(record), keep_input_(keep_input), with_bias_(with_bias) {}

  Matmul forward(Stream& stream, const Fp8Source& x);
  // Whether it keeps what the weight gradient needs of x. If not, that is a product of 16 bits, and
  // neither activation nor bias is a matter of this.
  bool keeps_input() const { return keep_input_; }
  const Tensor& kept_input() const { return x_.transposed; }
  // An activation follows: gradients that come are those of activation(before).
  void follow(Activation activation, Tensor before) {
    activation_ = activation;
    before_ = std::move(before);
  }

  Matmul input_gradient(Stream& stream, const Tensor& grad);
  Matmul weight_gradient(Stream& stream, const Tensor& grad);
  const Tensor& column_sums() const { return column_sums_; }  // whose sums are the bias gradient

  // After a product was launched: lets go of what no later one needs.
  void let_go() {
    x_.rows = grad_.rows = {};
    weight_ = {};
  }

 private:
  void cast_gradient(Stream& stream, const Tensor& grad, Fp8Copies copies);

  Fp8Layer& layer_;
  bool record_, keep_input_, with_bias_;
  Activation activation_ = Activation::none;
  Tensor before_, column_sums_;
  Fp8Tensor x_, weight_, grad_;
};

}  // namespace bloomery
