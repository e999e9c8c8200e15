#include "base/generators/mersenne_twister.h"

#include <algorithm>

namespace bloomery {
namespace {

constexpr std::size_t kShift = 397;  // distance of the recurrence

std::uint32_t twist(std::uint32_t high, std::uint32_t low, std::uint32_t far) {
  const std::uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  return far ^ (mixed >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

}  // namespace

MersenneTwister::MersenneTwister(std::uint32_t seed) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    state_[i] = seed;
    seed = 1812433253u * (seed ^ (seed >> 30)) + static_cast<std::uint32_t>(i) + 1;
  }
}

MersenneTwister MersenneTwister::from_key(std::span<const std::uint32_t> key) {
  MersenneTwister words(19650218u);
  auto& s = words.state_;
  const auto mixed = [&](std::size_t i, std::uint32_t factor) {
    return s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * factor);
  };
  std::size_t i = 1;
  const auto advance = [&] {
    if (++i == kBlock) {
      s[0] = s[kBlock - 1];
      i = 1;
    }
  };
  for (std::size_t k = 0; k < std::max(kBlock, key.size()); ++k) {
    const std::size_t j = k % key.size();
    s[i] = mixed(i, 1664525u) + key[j] + static_cast<std::uint32_t>(j);
    advance();
  }
  for (std::size_t k = 0; k + 1 < kBlock; ++k) {
    s[i] = mixed(i, 1566083941u) - static_cast<std::uint32_t>(i);
    advance();
  }
  s[0] = 0x80000000u;
  return words;
}

void MersenneTwister::refill() {
  auto& s = state_;
  std::size_t i = 0;
  for (; i < kBlock - kShift; ++i) {
    s[i] = twist(s[i], s[i + 1], s[i + kShift]);
  }
  for (; i < kBlock - 1; ++i) {
    s[i] = twist(s[i], s[i + 1], s[i + kShift - kBlock]);
  }
  s[kBlock - 1] = twist(s[kBlock - 1], s[0], s[kShift - 1]);
  for (i = 0; i < kBlock; ++i) {
    std::uint32_t number = s[i];
    number ^= number >> 11;
    number ^= (number << 7) & 0x9d2c5680u;
    number ^= (number << 15) & 0xefc60000u;
    numbers_[i] = number ^ (number >> 18);
  }
  used_ = 0;
}

}  // namespace bloomery
