// d [m, n] += bias [n]: what remains of a product's epilogue where cuBLASLt cannot fuse it.
#pragma once

#include "tensor/tensor.h"

namespace bloomery {

void add_bias_cuda(Stream& stream, const View& d, const ConstView& bias);

}  // namespace bloomery
