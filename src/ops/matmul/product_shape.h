// A product of one library call on the CPU.
#pragma once

#include <compare>
#include <cstdint>

#include "tensor/dtype.h"

namespace bloomery {

// c [m, n] (+)= op(a) op(b). Leading dimensions count elements of the matrices as stored.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false, add = false;
  DType input = DType::fp32;
  DType output = DType::fp32;  // of c; bf16 only with oneDNN, bf16 inputs and no add

  auto operator<=>(const ProductShape&) const = default;
};

}  // namespace bloomery
