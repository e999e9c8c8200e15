#include "ops/matmul/amx_planes.h"

#include <bit>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bloomery::amx {
namespace {

constexpr std::uint32_t kHigh = 0xFFFF0000u, kExponent = 0x7F800000u, kQuiet = 0x00400000u;
constexpr std::int64_t kPlane = kSquare * kSquare;

// The nearest bf16 number, as fp32 bits; infinity only for infinity.
std::uint32_t nearest(std::uint32_t word) {
  const std::uint32_t rounded = (word + 0x7FFFu + ((word >> 16) & 1u)) & kHigh;
  return (rounded & kExponent) == kExponent ? word & kHigh : rounded;
}

void split_row(const float* from, std::int64_t columns, bfloat16* to) {
  for (std::int64_t c = 0; c < columns; ++c) {
    const auto word = std::bit_cast<std::uint32_t>(from[c]);
    const bool finite = (word & kExponent) != kExponent;
    const bool nan = (word & 0x7FFFFFFFu) > kExponent;
    const std::uint32_t first = nearest(word);
    const float rest = finite ? from[c] - std::bit_cast<float>(first) : 0.0f;
    const std::uint32_t second = nearest(std::bit_cast<std::uint32_t>(rest));
    const float last = rest - std::bit_cast<float>(second);
    const std::uint32_t third = nearest(std::bit_cast<std::uint32_t>(last));
    to[c].bits = static_cast<std::uint16_t>((nan ? first | kQuiet : first) >> 16);
    to[kPlane + c].bits = static_cast<std::uint16_t>(second >> 16);
    to[2 * kPlane + c].bits = static_cast<std::uint16_t>(third >> 16);
  }
}

#if defined(__x86_64__)
#define BLOOMERY_VECTORS __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define BLOOMERY_INLINE_VECTORS \
  __attribute__((target("avx512f,avx512bw,avx512bf16"), always_inline)) inline

struct Both {
  __m512 low, high;
};

BLOOMERY_INLINE_VECTORS __m512 widened(__m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

// Stores the nearest bf16 numbers and takes them away.
BLOOMERY_INLINE_VECTORS __m512i take(Both& rest, bfloat16* to) {
  const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(rest.high, rest.low);
  _mm512_storeu_si512(to, rounded);
  rest.low = _mm512_sub_ps(rest.low, widened(_mm512_castsi512_si256(rounded)));
  rest.high = _mm512_sub_ps(rest.high, widened(_mm512_extracti64x4_epi64(rounded, 1)));
  return rounded;
}

// Rows of kSquare numbers; one that has an infinity, a NaN or a number that would round to infinity
// takes the slow way.
BLOOMERY_VECTORS void split_by_vectors(const float* from, std::int64_t ld, std::int64_t rows,
                                       bfloat16* to) {
  const __m512i exponent = _mm512_set1_epi16(0x7F80);
  for (std::int64_t r = 0; r < rows; ++r, from += ld, to += kSquare) {
    Both rest{_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16)};
    const __m512i first = take(rest, to);
    if (_mm512_cmpeq_epi16_mask(_mm512_and_si512(first, exponent), exponent) != 0) {
      split_row(from, kSquare, to);
      continue;
    }
    take(rest, to + kPlane);
    take(rest, to + 2 * kPlane);
  }
}
#undef BLOOMERY_VECTORS
#undef BLOOMERY_INLINE_VECTORS
#endif

}  // namespace

void split(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns,
           [[maybe_unused]] bool vectors, bfloat16* planes) {
#if defined(__x86_64__)
  if (vectors && columns == kSquare) {
    return split_by_vectors(from, ld, rows, planes);
  }
#endif
  for (std::int64_t r = 0; r < rows; ++r) {
    split_row(from + r * ld, columns, planes + r * kSquare);
  }
}

}  // namespace bloomery::amx
