#include "ops/attention/tile_rounding.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ops/matmul/amx_tiles.h"

namespace bloomery::amx {
namespace {

#if defined(__x86_64__)
#define BLOOMERY_ROUNDING __attribute__((target("avx512f,avx512bw,avx512bf16")))

BLOOMERY_ROUNDING inline __m512i round_two(const float* low, const float* high) {
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_loadu_ps(high), _mm512_loadu_ps(low)));
}

BLOOMERY_ROUNDING void rows_by_vectors(const float* from, std::int64_t ld, std::int64_t rows,
                                       std::int64_t columns, bfloat16* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = row * ld; i < row * ld + columns; i += 2 * kRows) {
      _mm512_storeu_si512(to + i, round_two(from + i, from + i + kRows));
    }
  }
}

BLOOMERY_ROUNDING void pairs_by_vectors(const float* from, std::int64_t ld, std::int64_t rows,
                                        std::int64_t columns, bfloat16* to) {
  const __m512i order = _mm512_load_si512(kPairOrder);
  for (std::int64_t strip = 0; strip < columns; strip += 2 * kRows) {
    for (std::int64_t row = 0; row < rows; row += kDepth) {
      for (std::int64_t half = 0; half < 2; ++half) {
        const float* first = from + row * ld + strip + half * kRows;
        for (int pair = 0; pair < kRows; ++pair, first += 2 * ld, to += kDepth) {
          _mm512_storeu_si512(to, _mm512_permutexvar_epi16(order, round_two(first, first + ld)));
        }
      }
    }
  }
}
#undef BLOOMERY_ROUNDING
#endif

}  // namespace

void round_rows(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                [[maybe_unused]] bool vectors, bfloat16* to) {
#if defined(__x86_64__)
  if (vectors) {
    return rows_by_vectors(from, ld, rows, columns, to);
  }
#endif
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      to[row * ld + column] = bfloat16(from[row * ld + column]);
    }
  }
}

void round_pairs(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 [[maybe_unused]] bool vectors, bfloat16* to) {
#if defined(__x86_64__)
  if (vectors) {
    return pairs_by_vectors(from, ld, rows, columns, to);
  }
#endif
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t step = column / 32 * (rows / kDepth) + row / kDepth;
      bfloat16* tile = to + (2 * step + column / kRows % 2) * kTile;
      tile[row % kDepth / 2 * kDepth + 2 * (column % kRows) + row % 2] =
          bfloat16(from[row * ld + column]);
    }
  }
}

}  // namespace bloomery::amx
