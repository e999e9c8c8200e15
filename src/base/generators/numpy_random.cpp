#include "base/generators/numpy_random.h"

#include <bit>
#include <cmath>

#include "base/error.h"

namespace bloomery {
namespace {

// All ones from the highest bit of `maximum` down.
std::uint64_t mask_for(std::uint64_t maximum) {
  return maximum == 0 ? 0 : ~std::uint64_t{0} >> std::countl_zero(maximum);
}

std::uint32_t checked_seed(std::int64_t seed) {
  check(seed >= 0 && seed <= UINT32_MAX, "the seed of the sample order must be from 0 to ",
        UINT32_MAX, ", not ", seed);
  return static_cast<std::uint32_t>(seed);
}

}  // namespace

NumpyRandom::NumpyRandom(std::int64_t seed) : words_(checked_seed(seed)) {}

std::uint64_t NumpyRandom::interval(std::uint64_t maximum) {
  if (maximum == 0) {
    return 0;
  }
  const std::uint64_t mask = mask_for(maximum);
  std::uint64_t value;
  do {
    value = (maximum > UINT32_MAX ? words_.next64() : words_.next()) & mask;
  } while (value > maximum);
  return value;
}

std::int64_t NumpyRandom::randint(std::int64_t low, std::int64_t high) {
  check(low < high, "cannot draw an integer from the empty range [", low, ", ", high, ")");
  return low + static_cast<std::int64_t>(interval(static_cast<std::uint64_t>(high - low - 1)));
}

double NumpyRandom::random() {
  const std::uint32_t high = words_.next() >> 5;
  const std::uint32_t low = words_.next() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::int64_t NumpyRandom::choice(std::span<const double> p) {
  double total = 0;
  for (const double one : p) {
    total += one;
  }
  const double drawn = random();
  double sum = 0;
  for (std::size_t i = 0; i + 1 < p.size(); ++i) {
    sum += p[i];
    if (sum / total > drawn) {
      return static_cast<std::int64_t>(i);
    }
  }
  return static_cast<std::int64_t>(p.size()) - 1;
}

std::int64_t NumpyRandom::geometric(double p) {
  // numpy counts up from 1 for likely successes and inverts the distribution for rare ones.
  if (p < 1.0 / 3) {
    return static_cast<std::int64_t>(std::ceil(std::log1p(-random()) / std::log(1 - p)));
  }
  const double drawn = random();
  std::int64_t trials = 1;
  double step = p;
  for (double sum = p; drawn > sum; ++trials) {
    step *= 1 - p;
    sum += step;
  }
  return trials;
}

std::size_t NumpyRandom::draw_positions(std::uint64_t last, Positions& positions) {
  const std::uint64_t mask = mask_for(last);
  const std::size_t wanted = std::min<std::uint64_t>(kAhead, last - (mask >> 1));
  std::size_t count = 0;
  while (count < wanted) {
    const std::span<const std::uint32_t> words = words_.ahead();
    std::size_t used = 0;
    // Each word is stored and counted only if it is in range: a branch here would be mispredicted
    // for every other word.
    while (used < words.size() && count < wanted) {
      const std::uint32_t position = words[used++] & static_cast<std::uint32_t>(mask);
      positions[count] = position;
      count += position <= last - count;
    }
    words_.skip(used);
  }
  return count;
}

}  // namespace bloomery
