#include "ops/matmul/amx_tiles.h"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bloomery::amx {
namespace {

void clear(bfloat16* tile) { std::fill_n(tile, kTile, bfloat16{}); }

}  // namespace

#if defined(__x86_64__)
namespace {

bool whole(const Part& part, std::int64_t rows, std::int64_t columns) {
  return part.rows == rows && part.columns == columns;
}

#define BLOOMERY_VECTORS __attribute__((target("avx512f,avx512bw")))
#define BLOOMERY_INLINE_VECTORS __attribute__((target("avx512f,avx512bw"), always_inline)) inline

// Eight numbers each of four rows that are `apart` numbers apart. In what transposes, only loads
// move data across lanes: shuffles across them wait for one port of the processor.
BLOOMERY_INLINE_VECTORS __m512i load_lanes(const bfloat16* from, std::int64_t apart) {
  const auto eight = [=](int row) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + row * apart));
  };
  __m512i lanes = _mm512_castsi128_si512(eight(0));
  lanes = _mm512_inserti32x4(lanes, eight(1), 1);
  lanes = _mm512_inserti32x4(lanes, eight(2), 2);
  return _mm512_inserti32x4(lanes, eight(3), 3);
}

// In each lane four rows of four words, rows and columns exchanged.
BLOOMERY_INLINE_VECTORS void transpose_words(__m512i (&r)[4]) {
  const __m512i a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpackhi_epi32(r[0], r[1]);
  const __m512i c = _mm512_unpacklo_epi32(r[2], r[3]), d = _mm512_unpackhi_epi32(r[2], r[3]);
  r[0] = _mm512_unpacklo_epi64(a, c);
  r[1] = _mm512_unpackhi_epi64(a, c);
  r[2] = _mm512_unpacklo_epi64(b, d);
  r[3] = _mm512_unpackhi_epi64(b, d);
}

BLOOMERY_VECTORS void rows_by_vectors(const Part& from, bfloat16* to) {
  for (int i = 0; i < 16; ++i) {
    _mm512_storeu_si512(to + i * kDepth, _mm512_loadu_si512(from.data + i * from.ld));
  }
}

// Columns come eight at a time. A lane holds eight rows: pairs of them become words, and words of
// one column move together.
BLOOMERY_VECTORS void columns_by_vectors(const Part& from, bfloat16* to) {
  for (int column = 0; column < 16; column += 8) {
    __m512i upper[4], lower[4];  // pairs of rows, columns 0 to 3 and 4 to 7
    for (int pair = 0; pair < 4; ++pair) {
      const bfloat16* const row = from.data + 2 * pair * from.ld + column;
      const __m512i even = load_lanes(row, 8 * from.ld),
                    odd = load_lanes(row + from.ld, 8 * from.ld);
      upper[pair] = _mm512_unpacklo_epi16(even, odd);
      lower[pair] = _mm512_unpackhi_epi16(even, odd);
    }
    transpose_words(upper);
    transpose_words(lower);
    for (int i = 0; i < 4; ++i) {
      _mm512_storeu_si512(to + (column + i) * kDepth, upper[i]);
      _mm512_storeu_si512(to + (column + 4 + i) * kDepth, lower[i]);
    }
  }
}

// Two rows as one vector, their numbers in turns.
BLOOMERY_VECTORS void pairs_by_vectors(const Part& from, bfloat16* to) {
  const __m512i order = _mm512_load_si512(kPairOrder);
  for (int pair = 0; pair < 16; ++pair) {
    const auto* const row = reinterpret_cast<const __m256i*>(from.data + 2 * pair * from.ld);
    const auto* const next = reinterpret_cast<const __m256i*>(from.data + (2 * pair + 1) * from.ld);
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(row)),
                                            _mm256_loadu_si256(next), 1);
    _mm512_storeu_si512(to + pair * kDepth, _mm512_permutexvar_epi16(order, both));
  }
}

BLOOMERY_VECTORS void transposed_pairs_by_vectors(const Part& from, bfloat16* to) {
  for (int word = 0; word < 16; word += 4) {
    __m512i r[4];
    for (int row = 0; row < 4; ++row) {
      r[row] = load_lanes(from.data + row * from.ld + 2 * word, 4 * from.ld);
    }
    transpose_words(r);
    for (int i = 0; i < 4; ++i) {
      _mm512_storeu_si512(to + (word + i) * kDepth, r[i]);
    }
  }
}
#undef BLOOMERY_VECTORS
#undef BLOOMERY_INLINE_VECTORS

}  // namespace

__attribute__((target("amx-tile"))) void configure_tiles() {
  // Constant, because g++ 12 tells its optimiser of the first eight bytes only.
  struct Configuration {
    std::uint8_t palette, start_row, reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t rows[16];
  };
  alignas(64) static constexpr Configuration kConfiguration{
      1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  static_assert(sizeof kConfiguration == 64);
  _tile_loadconfig(&kConfiguration);
}

__attribute__((target("amx-tile"))) void release_tiles() { _tile_release(); }

#else
void configure_tiles() {}
void release_tiles() {}
#endif

void pack_rows(const Part& from, [[maybe_unused]] bool vectors, bfloat16* to) {
#if defined(__x86_64__)
  if (vectors && whole(from, kRows, kDepth)) {
    return rows_by_vectors(from, to);
  }
#endif
  clear(to);
  for (std::int64_t r = 0; r < from.rows; ++r) {
    std::memcpy(to + r * kDepth, from.data + r * from.ld, from.columns * sizeof(bfloat16));
  }
}

void pack_columns(const Part& from, [[maybe_unused]] bool vectors, bfloat16* to) {
#if defined(__x86_64__)
  if (vectors && whole(from, kDepth, kRows)) {
    return columns_by_vectors(from, to);
  }
#endif
  clear(to);
  for (std::int64_t c = 0; c < from.columns; ++c) {
    for (std::int64_t r = 0; r < from.rows; ++r) {
      to[c * kDepth + r] = from.data[r * from.ld + c];
    }
  }
}

void pack_pairs(const Part& from, [[maybe_unused]] bool vectors, bfloat16* to) {
#if defined(__x86_64__)
  if (vectors && whole(from, kDepth, kRows)) {
    return pairs_by_vectors(from, to);
  }
#endif
  clear(to);
  for (std::int64_t r = 0; r < from.rows; ++r) {
    for (std::int64_t c = 0; c < from.columns; ++c) {
      to[r / 2 * kDepth + 2 * c + r % 2] = from.data[r * from.ld + c];
    }
  }
}

void pack_pairs_transposed(const Part& from, [[maybe_unused]] bool vectors, bfloat16* to) {
#if defined(__x86_64__)
  if (vectors && whole(from, kRows, kDepth)) {
    return transposed_pairs_by_vectors(from, to);
  }
#endif
  clear(to);
  for (std::int64_t r = 0; r < from.rows; ++r) {
    for (std::int64_t c = 0; c < from.columns; ++c) {
      to[c / 2 * kDepth + 2 * r + c % 2] = from.data[r * from.ld + c];
    }
  }
}

}  // namespace bloomery::amx
