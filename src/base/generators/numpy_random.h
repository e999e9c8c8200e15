// numpy's legacy RandomState, number for number: what Megatron's sample order is made of.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/generators/mersenne_twister.h"

namespace bloomery {

class NumpyRandom {
 public:
  // numpy takes seeds from 0 to 2^32 - 1; any other is an Error, as there.
  explicit NumpyRandom(std::int64_t seed);

  // Uniform in [0, maximum].
  std::uint64_t interval(std::uint64_t maximum);
  // Uniform in [low, high).
  std::int64_t randint(std::int64_t low, std::int64_t high);
  // Uniform in [0, 1) with 53 bits.
  double random();
  // The index that choice() takes from an array whose probabilities are p.
  std::int64_t choice(std::span<const double> p);
  // Number of trials up to the first success.
  std::int64_t geometric(double p);

  template <class T>
  void shuffle(std::span<T> values);

 private:
  // Positions drawn before they are swapped: they do not depend on the values, so the memory they
  // name can be on its way already.
  static constexpr std::size_t kAhead = 1024;
  using Positions = std::array<std::uint32_t, kAhead>;

  // interval(last), interval(last - 1), ... as many as fit and share a mask; at least one.
  // last < 2^32.
  std::size_t draw_positions(std::uint64_t last, Positions& positions);

  MersenneTwister words_;
};

template <class T>
void NumpyRandom::shuffle(std::span<T> values) {
  if (values.empty()) {
    return;
  }
  std::uint64_t last = values.size() - 1;
  for (; last > UINT32_MAX; --last) {
    std::swap(values[last], values[interval(last)]);
  }
  Positions positions;
  while (last > 0) {
    const std::size_t count = draw_positions(last, positions);
    for (std::size_t k = 0; k < count; ++k) {
      __builtin_prefetch(&values[positions[k]], 1);
    }
    for (std::size_t k = 0; k < count; ++k) {
      std::swap(values[last - k], values[positions[k]]);
    }
    last -= count;
  }
}

}  // namespace bloomery
