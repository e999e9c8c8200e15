#include "samples/curriculum/numpy_generator.h"

#include <algorithm>
#include <array>
#include <bit>

namespace bloomery {
namespace {

// numpy's SeedSequence of one number: words that depend on all of its bits.
class SeedWords {
 public:
  explicit SeedWords(std::uint64_t seed) {
    const std::array<std::uint32_t, 4> entropy = {static_cast<std::uint32_t>(seed),
                                                  static_cast<std::uint32_t>(seed >> 32)};
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      pool_[i] = hashed(entropy[i]);
    }
    for (std::size_t from = 0; from < pool_.size(); ++from) {
      for (std::size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) {
          pool_[to] = mixed(pool_[to], hashed(pool_[from]));
        }
      }
    }
  }

  std::uint64_t next() {
    const std::uint64_t low = word();
    return low | static_cast<std::uint64_t>(word()) << 32;
  }

 private:
  std::uint32_t hashed(std::uint32_t value) {
    value ^= hash_;
    hash_ *= 0x931e8875u;
    value *= hash_;
    return value ^ value >> 16;
  }
  static std::uint32_t mixed(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t result = 0xca01f9ddu * x - 0x4973f715u * y;
    return result ^ result >> 16;
  }
  std::uint32_t word() {
    std::uint32_t value = pool_[taken_++ % pool_.size()] ^ output_;
    output_ *= 0x58f38dedu;
    value *= output_;
    return value ^ value >> 16;
  }

  std::array<std::uint32_t, 4> pool_{};
  std::uint32_t hash_ = 0x43b0d7e5u, output_ = 0x8b51f9ddu;
  std::size_t taken_ = 0;
};

}  // namespace

NumpyGenerator::NumpyGenerator(std::uint64_t seed) {
  SeedWords words(seed);
  std::array<std::uint64_t, 4> w{};
  std::ranges::generate(w, [&] { return words.next(); });
  const auto joined = [](std::uint64_t high, std::uint64_t low) {
    return static_cast<Word128>(high) << 64 | low;
  };
  increment_ = joined(w[2], w[3]) << 1 | 1;
  step();
  state_ += joined(w[0], w[1]);
  step();
}

void NumpyGenerator::step() {
  constexpr auto kFactor = static_cast<Word128>(0x2360ed051fc65da4u) << 64 | 0x4385df649fccf645u;
  state_ = state_ * kFactor + increment_;
}

std::uint64_t NumpyGenerator::word64() {
  step();
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

std::uint32_t NumpyGenerator::word32() {
  if (std::exchange(has_half_, !has_half_)) {
    return half_;
  }
  const std::uint64_t word = word64();
  half_ = static_cast<std::uint32_t>(word >> 32);
  return static_cast<std::uint32_t>(word);
}

double NumpyGenerator::random() { return static_cast<double>(word64() >> 11) * 0x1p-53; }

std::uint64_t NumpyGenerator::interval(std::uint64_t maximum) {
  if (maximum == 0) {
    return 0;
  }
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(maximum);
  while (true) {
    const std::uint64_t drawn = (maximum <= UINT32_MAX ? word32() : word64()) & mask;
    if (drawn <= maximum) {
      return drawn;
    }
  }
}

std::vector<std::int64_t> NumpyGenerator::choice(std::span<const double> weights,
                                                 std::int64_t count) {
  std::vector<double> bounds;
  double sum = 0;
  for (const double weight : weights) {
    bounds.push_back(sum += weight);
  }
  for (double& bound : bounds) {
    bound /= sum;
  }
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(count));
  for (std::int64_t& each : chosen) {
    each = std::ranges::upper_bound(bounds, random()) - bounds.begin();
  }
  return chosen;
}

}  // namespace bloomery
