// The numbers of Python's random.Random, one for one.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/generators/mersenne_twister.h"

namespace bloomery {

class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed) : words_(seeded(seed)) {}

  // Uniform in [0, count), as randint(0, count - 1); 0 < count < 2^32.
  std::uint32_t below(std::uint32_t count) {
    const int unused = std::countl_zero(count);
    std::uint32_t drawn;
    do {
      drawn = words_.next() >> unused;
    } while (drawn >= count);
    return drawn;
  }
  // So many different numbers below `count`, as sample(range(count), wanted).
  std::vector<std::uint32_t> sample(std::uint32_t count, std::uint32_t wanted);
  // Uniform in [0, 1) with 53 bits.
  double random() {
    const std::uint32_t high = words_.next() >> 5, low = words_.next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  static MersenneTwister seeded(std::uint64_t seed) {
    const std::array key = {static_cast<std::uint32_t>(seed),
                            static_cast<std::uint32_t>(seed >> 32)};
    return MersenneTwister::from_key(std::span(key).first(key[1] != 0 ? 2 : 1));
  }

  MersenneTwister words_;
};

}  // namespace bloomery
