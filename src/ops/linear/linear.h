// y = f(x W^T + b): the linear layer on one rank.
#pragma once

#include "autograd/context.h"
#include "autograd/rematerialize.h"
#include "ops/activation/activation_kind.h"

namespace bloomery {

// Gives what a weight is multiplied as, in its dtype and shape.
using WeightSource = std::function<Tensor(Stream&)>;

struct LinearOptions {
  Activation activation = Activation::none;
  // False: y is what the activation would be applied to, for a layer that applies it to its input
  // (LinearInput::activation). The gradient of y is that of the activated value all the same.
  bool apply_activation = true;
  // False: the bias is not added here, though its gradient is still computed. The ranks of a
  // row-parallel layer hold one bias, which only one of them may add.
  bool add_bias = true;
  // Called in the backward pass between dL/dx and dL/dW, where a layer may start to communicate the
  // first while the second is computed. May be empty.
  BackwardFn after_input_gradient;
  // Called in the backward pass before dL/dx, where a layer may start to fetch what the input's
  // `rematerialize` gives, if that will be called. May be empty.
  BackwardFn before_input_gradient;
  // What stands for the weight in both products that read it; its gradient is the weight's all the
  // same. Empty: its value.
  WeightSource weight;
};

// What a linear layer is applied to: the value or, where its producer left it so, an activation of
// it. With `rematerialize` it does not keep the value for its weight gradient.
struct LinearInput {
  LinearInput(Value x, Rematerialize again = {})
      : value(std::move(x)), rematerialize(std::move(again)) {}
  LinearInput(Value x, Activation left) : value(std::move(x)), activation(left) {}
  operator const Value&() const { return value; }

  Value value;
  Rematerialize rematerialize;
  Activation activation = Activation::none;
};

// x [.., in], weight [out.., in], bias of out elements or null; y [rows, out]. All of one dtype.
// Backward, with g = dL/dy * f'(before), where before = x W^T + b:
//   dL/dx = g W,  dL/dW = g^T x,  dL/db = column sums of g.
// Keeps x unless the weight is frozen, and `before` when there is an activation. The derivative f'
// is offered to the consumer of y (see GradSlot); the derivative that x offers is applied in the
// product that makes dL/dx, and where cheap values are made again (ActivationPolicy) such an x is
// not kept. Of a weight among the rank's Fp8Layers the products are of operands in 8 bits; then a
// transposed copy of x in 8 bits is kept, whatever else could make x again, and g is made as it is
// cast.
Value linear(Context& context, const LinearInput& x, Parameter& weight, Parameter* bias,
             const LinearOptions& options = {});

}  // namespace bloomery
