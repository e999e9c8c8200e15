#include "base/generators/torch_random.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/generators/mersenne_twister.h"

namespace bloomery {
namespace {

// Below this torch draws 32 bits a position, from it on 64.
constexpr std::int64_t kWide = UINT32_MAX / 20;
constexpr std::int64_t kAhead = 1024;  // positions drawn before they are used, to prefetch

std::vector<std::uint32_t> narrow_permutation(std::int64_t count, MersenneTwister& words) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::array<std::uint32_t, kAhead> partners;
  for (std::int64_t begin = 0; begin < count - 1; begin += kAhead) {
    const std::int64_t end = std::min(begin + kAhead, count - 1);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto partner = static_cast<std::uint32_t>(i + words.next() % (count - i));
      partners[i - begin] = partner;
      __builtin_prefetch(&order[partner], 1);
    }
    for (std::int64_t i = begin; i < end; ++i) {
      std::swap(order[i], order[partners[i - begin]]);
    }
  }
  return order;
}

// The inside-out variant: element i enters at a random place among the first i + 1.
std::vector<std::uint32_t> wide_permutation(std::int64_t count, MersenneTwister& words) {
  std::vector<std::uint32_t> order(count);
  std::array<std::uint32_t, kAhead> places;
  for (std::int64_t begin = 0; begin < count; begin += kAhead) {
    const std::int64_t end = std::min(begin + kAhead, count);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto place = static_cast<std::uint32_t>(words.next64() % (i + 1));
      places[i - begin] = place;
      __builtin_prefetch(&order[place], 1);
    }
    for (std::int64_t i = begin; i < end; ++i) {
      order[i] = order[places[i - begin]];
      order[places[i - begin]] = static_cast<std::uint32_t>(i);
    }
  }
  return order;
}

}  // namespace

std::vector<std::uint32_t> torch_randperm(std::int64_t count, std::uint64_t seed) {
  check(count >= 0 && count <= UINT32_MAX, "a permutation of ", count,
        " samples is beyond what --dataloader-type cyclic supports; use single");
  MersenneTwister words(static_cast<std::uint32_t>(seed));
  return count < kWide ? narrow_permutation(count, words) : wide_permutation(count, words);
}

}  // namespace bloomery
