// Products of a few rows with a transposed matrix, as generation has them: bound by reading the
// matrix, which a general kernel does at a fraction of the bandwidth.
#pragma once

#include "ops/matmul/matmul.h"

namespace bloomery {

inline constexpr std::int64_t kFewRows = 4;

// Runs the product with its epilogue. False, and nothing done, when it is not one of these.
bool multiply_few_rows(Stream& stream, const Matmul& matmul, const MatmulSizes& sizes);

}  // namespace bloomery
