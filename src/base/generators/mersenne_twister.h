// The 32-bit Mersenne Twister (MT19937) as numpy's RandomState, torch's CPU generator and
// std::mt19937 have it, made 624 numbers at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bloomery {

class MersenneTwister {
 public:
  explicit MersenneTwister(std::uint32_t seed);
  // Seeded by several numbers, as Python's Random is.
  static MersenneTwister from_key(std::span<const std::uint32_t> key);

  std::uint32_t next() {
    if (used_ == kBlock) {
      refill();
    }
    return numbers_[used_++];
  }
  // The first number drawn is the high half.
  std::uint64_t next64() {
    const std::uint64_t high = next();
    return high << 32 | next();
  }

  // The numbers of the current block not yet drawn, at least one; skip() then says how many of
  // them were used.
  std::span<const std::uint32_t> ahead() {
    if (used_ == kBlock) {
      refill();
    }
    return std::span(numbers_).subspan(used_);
  }
  void skip(std::size_t count) { used_ += count; }

 private:
  static constexpr std::size_t kBlock = 624;

  void refill();

  std::array<std::uint32_t, kBlock> state_, numbers_;
  std::size_t used_ = kBlock;
};

}  // namespace bloomery
