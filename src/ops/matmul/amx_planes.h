// fp32 numbers as sums of three bf16 numbers (x0, x1, x2, each the nearest to what is left), so
// that the tile multipliers serve fp32 as well. Of the nine products of two such sums the three
// smallest together stay below half a unit in the last place of fp32 and are left out. Two limits:
// tiles take numbers below 2^-126 for zeros, so that numbers below about 2^-110 lose their last
// bits; and an infinity times the zeros of a short number gives NaN where fp32 would give infinity.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace bloomery::amx {

inline constexpr std::int64_t kPlanes = 3, kSquare = 32;

// planes[p][r * kSquare + c] = x_p of x = from[r * ld + c], for rows and columns up to kSquare; the
// rest of the planes is left as it is. Infinities and NaN lie in the first plane alone. With
// vectors: on a processor that rounds to bf16 (avx512bf16).
void split(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns,
           bool vectors, bfloat16* planes);

}  // namespace bloomery::amx
