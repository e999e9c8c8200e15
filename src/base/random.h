// Counter-based random numbers (Philox 4x32): a number is a function of (key, counter) alone, so
// that it depends neither on rank nor on order. Usable in device code.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bloomery {

using RandomKey = std::uint64_t;

// A key for one stream of numbers, from the seed and what the numbers are for.
RandomKey random_key(std::uint64_t seed, std::string_view purpose);

// Ten rounds is the published default; seven rounds pass the same statistical batteries and are
// what dropout uses.
inline constexpr int kPhiloxRounds = 10;
inline constexpr int kDropoutRounds = 7;

using RandomBlock = std::array<std::uint32_t, 4>;

template <int kRounds = kPhiloxRounds>
constexpr RandomBlock philox(RandomKey key, RandomBlock counter) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = RandomBlock{
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in [0, 1) with 53 bits, and standard normal, for element `index` of the stream `key`.
double random_uniform(RandomKey key, std::uint64_t index);
double random_normal(RandomKey key, std::uint64_t index);

}  // namespace bloomery
