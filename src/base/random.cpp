#include "base/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <numbers>

namespace bloomery {
namespace {

double to_unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

RandomBlock block(RandomKey key, std::uint64_t index) {
  return philox(
      key, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0u, 0u});
}

}  // namespace

RandomKey random_key(std::uint64_t seed, std::string_view purpose) {
  return XXH3_64bits_withSeed(purpose.data(), purpose.size(), seed);
}

double random_uniform(RandomKey key, std::uint64_t index) {
  const RandomBlock bits = block(key, index);
  return to_unit(bits[0], bits[1]);
}

// Box-Muller on the two 53-bit uniforms of one block.
double random_normal(RandomKey key, std::uint64_t index) {
  const RandomBlock bits = block(key, index);
  const double radius = std::sqrt(-2.0 * std::log1p(-to_unit(bits[0], bits[1])));
  return radius * std::cos(2.0 * std::numbers::pi * to_unit(bits[2], bits[3]));
}

}  // namespace bloomery
