// The dropout mask of one row, for CPU kernels. The functions have internal linkage: each
// instruction-set level needs its own.
#pragma once

#include "ops/dropout/dropout.h"

namespace bloomery {

// Philox of kMaskBlocks neighbouring blocks, eight channels each; the same numbers as
// dropout_block, computed side by side.
inline constexpr int kMaskBlocks = 16;
inline constexpr int kMaskChannels = 8 * kMaskBlocks;

static inline void random_channels(RandomKey key, const RandomBlock& start,
                                   std::uint16_t* __restrict__ halves) {
  std::uint32_t c[4][kMaskBlocks];
  for (int i = 0; i < kMaskBlocks; ++i) {
    c[0][i] = start[0];
    c[1][i] = start[1];
    c[2][i] = start[2];
    c[3][i] = start[3] + static_cast<std::uint32_t>(i);
  }
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kDropoutRounds; ++round) {
    for (int i = 0; i < kMaskBlocks; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0][i];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2][i];
      c[0][i] = static_cast<std::uint32_t>(p1 >> 32) ^ c[1][i] ^ k0;
      c[1][i] = static_cast<std::uint32_t>(p1);
      c[2][i] = static_cast<std::uint32_t>(p0 >> 32) ^ c[3][i] ^ k1;
      c[3][i] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kMaskBlocks; ++i) {
    for (int word = 0; word < 4; ++word) {
      halves[8 * i + 2 * word] = static_cast<std::uint16_t>(c[word][i]);
      halves[8 * i + 2 * word + 1] = static_cast<std::uint16_t>(c[word][i] >> 16);
    }
  }
}

// factors[c] = the scale where channel c of row `row` is kept, else 0. There must be room for
// `columns` rounded up to kMaskChannels.
static inline void fill_mask(const DropoutMask& mask, std::int64_t row, std::int64_t columns,
                             float* __restrict__ factors) {
  const DropoutPlaces& at = mask.places;
  const auto sample = static_cast<std::uint64_t>(at.samples[row / at.length]);
  const float scale = dropout_scale(mask.threshold);
  std::uint16_t halves[kMaskChannels];
  for (std::int64_t first = 0; first < columns; first += kMaskChannels) {
    const RandomBlock start = {static_cast<std::uint32_t>(sample),
                               static_cast<std::uint32_t>(sample >> 32) & 0xFFFFu,
                               static_cast<std::uint32_t>(at.places[row % at.length]),
                               static_cast<std::uint32_t>(first / 8)};
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
