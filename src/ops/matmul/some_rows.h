// Products of up to 64 rows with a transposed matrix, as steps of generation with many sequences
// have them: bound by reading the matrix. For sm_90a, 16-bit operands.
#pragma once

#include "ops/activation/activation.h"
#include "ops/matmul/matmul.h"

namespace bloomery {

inline constexpr std::int64_t kSomeRows = 64;

// Runs the product with its epilogue. False, and nothing done, when it is not one of these.
bool multiply_some_rows(Stream& stream, const Matmul& matmul, const MatmulSizes& sizes);

// Whether multiply_gated() takes the product, if a gate comes behind it.
bool may_be_gated(Stream& stream, const Matmul& matmul);
// The product and the gate of its result, which alone is stored.
void multiply_gated(Stream& stream, const Matmul& matmul, const GatedForward& gate);

}  // namespace bloomery
