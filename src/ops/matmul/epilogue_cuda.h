// What remains of a product's epilogue where cuBLASLt does not take it in.
#pragma once

#include "ops/matmul/matmul.h"

namespace bloomery {

// d [m, n] += bias [n].
void add_bias_cuda(Stream& stream, const View& d, const ConstView& bias);

// d *= derivative(derivative_at) of the product, and its column sums if they are wanted.
void multiply_by_derivative_cuda(Stream& stream, const Matmul& matmul, const MatmulSizes& sizes);

}  // namespace bloomery
