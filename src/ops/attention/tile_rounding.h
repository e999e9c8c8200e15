// Weights [key, query] in fp32 as operands of products on tiles (ops/matmul/amx_tiles.h): rounded
// to bf16, to nearest, ties to even; NaN stays NaN. Rows and columns are multiples of 32. With
// `vectors` (which need cpu_level() 3) numbers below the normal range become zeros, as they would
// inside the products.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace bloomery::amx {

// to[row][column] = from[row][column], both with rows of `ld` numbers: a's rows.
void round_rows(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                bool vectors, bfloat16* to);
// The tiles of b, of which `from` holds the inner positions as rows: strips of 32 columns, in them
// steps of 32 rows, in them the left and the right tile.
void round_pairs(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 bool vectors, bfloat16* to);

}  // namespace bloomery::amx
