// The dropout mask of one row, for CPU kernels. The functions have internal linkage: each
// instruction-set level needs its own.
#pragma once

#include <cstring>

#include "ops/dropout/dropout.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace bloomery {

// Channels whose mask is made at a time.
inline constexpr int kMaskChannels = 128;

#if defined(__AVX512F__)
inline constexpr int kPhiloxBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kPhiloxBytes = 32;
#else
inline constexpr int kPhiloxBytes = 16;
#endif
typedef std::uint64_t PhiloxPairs __attribute__((vector_size(kPhiloxBytes)));
typedef std::uint32_t PhiloxWords __attribute__((vector_size(kPhiloxBytes)));

// Products of the low halves of 64-bit lanes.
[[gnu::always_inline]] static inline void multiply_low(PhiloxPairs& product, const PhiloxPairs& a,
                                                       const PhiloxPairs& b) {
#if defined(__AVX512F__)
  product = (PhiloxPairs)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  product = (PhiloxPairs)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  product = (PhiloxPairs)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  product = (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

// The four words of every block in reverse.
[[gnu::always_inline]] static inline void reverse_words(PhiloxPairs& lanes) {
  const auto words = (PhiloxWords)lanes;
#if defined(__AVX512F__)
  lanes = (PhiloxPairs)__builtin_shufflevector(words, words, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8,
                                               15, 14, 13, 12);
#elif defined(__AVX2__)
  lanes = (PhiloxPairs)__builtin_shufflevector(words, words, 3, 2, 1, 0, 7, 6, 5, 4);
#else
  lanes = (PhiloxPairs)__builtin_shufflevector(words, words, 3, 2, 1, 0);
#endif
}

// dropout_block of kMaskChannels / 8 neighbouring blocks, the first of which is `start`. A block is
// two 64-bit lanes, (c0 | c1 << 32) and (c2 | c3 << 32); a round is then
//   lanes = reverse 32-bit words of (low halves * multipliers) ^ (lanes >> 32) ^ keys
// and the result lies in memory as the sixteen bits of channel after channel.
static inline void random_channels(RandomKey key, const RandomBlock& start,
                                   std::uint16_t* __restrict__ halves) {
  constexpr int kPairs = kPhiloxBytes / 8;
  constexpr int kVectors = kMaskChannels * 2 / kPhiloxBytes;
  PhiloxPairs state[kVectors] = {}, multipliers{}, keys{};
  for (int i = 0; i < kPairs; ++i) {
    multipliers[i] = i % 2 == 0 ? 0xD2511F53u : 0xCD9E8D57u;
  }
  for (int vector = 0; vector < kVectors; ++vector) {
    for (int i = 0; i < kPairs; ++i) {
      const auto block = start[3] + static_cast<std::uint32_t>((vector * kPairs + i) / 2);
      state[vector][i] = i % 2 == 0 ? start[0] | std::uint64_t{start[1]} << 32
                                    : start[2] | std::uint64_t{block} << 32;
    }
  }
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kDropoutRounds; ++round) {
    for (int i = 0; i < kPairs; ++i) {
      keys[i] = i % 2 == 0 ? k0 : k1;
    }
    for (PhiloxPairs& lanes : state) {
      PhiloxPairs product;
      multiply_low(product, lanes, multipliers);
      reverse_words(product);
      lanes = product ^ (lanes >> 32) ^ keys;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  std::memcpy(halves, state, sizeof state);
}

// factors[c] = the scale where channel c of row `row` is kept, else 0. There must be room for
// `columns` rounded up to kMaskChannels.
static inline void fill_mask(const DropoutMask& mask, std::int64_t row, std::int64_t columns,
                             float* __restrict__ factors) {
  const std::int64_t token = mask.first_token + row;
  const auto sample = static_cast<std::uint64_t>(mask.places.sample(token));
  const auto place = static_cast<std::uint32_t>(mask.places.place(token));
  const float scale = dropout_scale(mask.threshold);
  std::uint16_t halves[kMaskChannels];
  for (std::int64_t first = 0; first < columns; first += kMaskChannels) {
    const RandomBlock start = {static_cast<std::uint32_t>(sample),
                               static_cast<std::uint32_t>(sample >> 32) & 0xFFFFu, place,
                               mask.first_block + static_cast<std::uint32_t>(first / 8)};
    random_channels(mask.key, start, halves);
    for (int i = 0; i < kMaskChannels; ++i) {
      factors[first + i] = std::uint32_t{halves[i]} >= mask.threshold ? scale : 0.0f;
    }
  }
}

// Floats that fill_mask needs for a row.
static inline std::size_t mask_size(std::int64_t columns) {
  return static_cast<std::size_t>((columns + kMaskChannels - 1) / kMaskChannels * kMaskChannels);
}

}  // namespace bloomery
