#include "ops/matmul/amx_tiles.h"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bloomery::amx {
namespace {

bool whole(const Part& part, std::int64_t rows, std::int64_t columns) {
  return part.rows == rows && part.columns == columns;
}

void clear(bfloat16* tile) { std::fill_n(tile, kTile, bfloat16{}); }

}  // namespace

#if defined(__x86_64__)
namespace {

// 16 rows of 16 words, rows and columns exchanged.
__attribute__((target("avx512f,avx512bw"), always_inline)) inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 4) {  // words within groups of four rows
    const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    const __m512i b = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]);
    const __m512i d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
    t[i] = _mm512_unpacklo_epi64(a, c);
    t[i + 1] = _mm512_unpackhi_epi64(a, c);
    t[i + 2] = _mm512_unpacklo_epi64(b, d);
    t[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  for (int i = 0; i < 4; ++i) {  // then the 4 x 4 matrix of groups of four words
    const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xDD);
    const __m512i d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xDD);
    r[i] = _mm512_shuffle_i32x4(a, b, 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(a, b, 0xDD);
    r[i + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(c, d, 0xDD);
  }
}

// Pairs of rows as words: word c of r[i] holds rows 2i and 2i + 1 of column c.
__attribute__((target("avx512f,avx512bw"), always_inline)) inline void load_pairs(
    const Part& from, __m512i (&r)[16]) {
  for (int i = 0; i < 16; ++i) {
    const bfloat16* row = from.data + 2 * i * from.ld;
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + from.ld));
    r[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
  }
}

__attribute__((target("avx512f,avx512bw"), always_inline)) inline void store_rows(
    const __m512i (&r)[16], bfloat16* to) {
  for (int i = 0; i < 16; ++i) {
    _mm512_storeu_si512(to + i * kDepth, r[i]);
  }
}

__attribute__((target("avx512f,avx512bw"))) void rows_by_vectors(const Part& from, bfloat16* to) {
  for (int i = 0; i < 16; ++i) {
    _mm512_storeu_si512(to + i * kDepth, _mm512_loadu_si512(from.data + i * from.ld));
  }
}

__attribute__((target("avx512f,avx512bw"))) void pairs_by_vectors(const Part& from, bfloat16* to) {
  __m512i r[16];
  load_pairs(from, r);
  store_rows(r, to);
}

__attribute__((target("avx512f,avx512bw"))) void columns_by_vectors(const Part& from,
                                                                    bfloat16* to) {
  __m512i r[16];
  load_pairs(from, r);
  transpose(r);
  store_rows(r, to);
}

__attribute__((target("avx512f,avx512bw"))) void transposed_pairs_by_vectors(const Part& from,
                                                                             bfloat16* to) {
  __m512i r[16];
  for (int i = 0; i < 16; ++i) {
    r[i] = _mm512_loadu_si512(from.data + i * from.ld);
  }
  transpose(r);
  store_rows(r, to);
}

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
