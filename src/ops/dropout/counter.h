// Which elements dropout keeps: a function of the key (seed, layer, purpose) and of the element's
// place in the data (sample, position, channel, or head and key position), never of rank, step or
// micro-batch. The same on every device. Usable in device code.
#pragma once

#include <cstdint>

#include "autograd/batch.h"
#include "base/random.h"

namespace bloomery {

struct DropoutOptions {
  float probability = 0;
  RandomKey key = 0;
  TokenRange tokens;  // that the rows of the activation stand for
};

// The coordinates of token t: place `place(t)` of sample `sample(t)`. In device memory.
struct TokenPlaces {
  const std::int64_t* samples = nullptr;  // [sequences], or [tokens]
  const std::int32_t* places = nullptr;   // [length], or [tokens]
  std::int64_t length = 1;
  bool sample_per_token = false, place_per_token = false;

  constexpr std::int64_t sample(std::int64_t t) const {
    return samples[sample_per_token ? t : t / length];
  }
  constexpr std::int32_t place(std::int64_t t) const {
    return places[place_per_token ? t : t % length];
  }
};

// Elements are dropped in units of 1/65536: 16 random bits each, eight elements per Philox block.
constexpr std::uint32_t dropout_threshold(float probability) {
  return static_cast<std::uint32_t>(probability * 65536.0f + 0.5f);
}
// What kept elements are multiplied by; exact for the probability that is really used.
constexpr float dropout_scale(std::uint32_t threshold) {
  return threshold < 65536u ? 65536.0f / static_cast<float>(65536u - threshold) : 0.0f;
}

// Of a block of eight elements, which is the last word. `head` is the global head of attention,
// else 0.
constexpr RandomBlock dropout_counter(std::int64_t sample, std::int32_t place, std::uint32_t head,
                                      std::uint32_t block) {
  const auto bits = static_cast<std::uint64_t>(sample);
  return {static_cast<std::uint32_t>(bits),
          (static_cast<std::uint32_t>(bits >> 32) & 0xFFFFu) | (head << 16),
          static_cast<std::uint32_t>(place), block};
}
// The random bits of eight elements.
constexpr RandomBlock dropout_block(RandomKey key, std::int64_t sample, std::int32_t place,
                                    std::uint32_t head, std::uint32_t block) {
  return philox<kDropoutRounds>(key, dropout_counter(sample, place, head, block));
}

// Lane 0..7 of a block.
constexpr bool dropout_keeps(const RandomBlock& block, int lane, std::uint32_t threshold) {
  return ((block[lane / 2] >> (16 * (lane % 2))) & 0xFFFFu) >= threshold;
}

// Channel c of a token: block c / 8, lane c % 8.
//
// Key k of a query: blocks of 32 keys, in which the eight keys of one block are those that one
// thread of a tensor-core tile holds (two neighbours of every eight), so that no thread computes
// bits it does not use.
constexpr std::uint32_t attention_dropout_block(std::uint32_t k) {
  return (k / 32) * 4 + (k % 8) / 2;
}
constexpr int attention_dropout_lane(std::uint32_t k) {
  return static_cast<int>(((k % 32) / 8) * 2 + k % 2);
}

}  // namespace bloomery
