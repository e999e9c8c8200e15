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
  // Null where the layer computes in 16 bits.
  static std::shared_ptr<Fp8Products> of(const Context& context, const Parameter& weight,
                                         std::int64_t rows);
  Fp8Products(Fp8Layer& layer, bool record, bool keep_input)
      : layer_(layer), record_(record), keep_input_(keep_input) {}

  Matmul forward(Stream& stream, const Tensor& x);
  // Whether it keeps what the weight gradient needs of x. If not, that is a product of 16 bits.
  bool keeps_input() const { return keep_input_; }
  const Tensor& kept_input() const { return x_.transposed; }

  Matmul input_gradient(Stream& stream, const Tensor& grad);
  Matmul weight_gradient(Stream& stream, const Tensor& grad);

  // After a product was launched: lets go of what no later one needs.
  void let_go() {
    x_.rows = grad_.rows = {};
    weight_ = {};
  }

 private:
  Fp8Layer& layer_;
  bool record_, keep_input_;
  Fp8Tensor x_, weight_, grad_;
};

}  // namespace bloomery
