#include "base/normals.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace bloomery {
namespace {

// Loops over a block are vectors; arrays between them stay in L1.
constexpr int kBlock = 256;
// Of what normals() gives, relative; 2^-50 is the largest that was seen.
constexpr double kError = 0x1p-45;

template <class T>
using Lanes = std::array<T, kBlock>;

#define BLOOMERY_INLINE inline __attribute__((always_inline))

// A polynomial in z, the highest term first.
template <class... Terms>
BLOOMERY_INLINE double polynomial(double z, double highest, Terms... others) {
  ((highest = highest * z + others), ...);
  return highest;
}

// The two 53-bit uniforms of each index (random.cpp); conversions are of signed numbers of 32 bits,
// for which there are vector instructions everywhere.
BLOOMERY_INLINE double unit(std::uint32_t high, std::uint32_t low) {
  const auto number = [](std::uint32_t x) { return static_cast<double>(static_cast<int>(x)); };
  return (number(high >> 16) * 0x1p37 + number(high & 0xFFFF) * 0x1p21 + number(low >> 11)) *
         0x1p-53;
}

BLOOMERY_INLINE void uniforms(RandomKey key, const std::uint64_t* indices, Lanes<double>& first,
                              Lanes<double>& second) {
  Lanes<std::uint32_t> c0, c1, c2, c3;
  for (int i = 0; i < kBlock; ++i) {
    c0[i] = static_cast<std::uint32_t>(indices[i]);
    c1[i] = static_cast<std::uint32_t>(indices[i] >> 32);
    c2[i] = c3[i] = 0;
  }
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int i = 0; i < kBlock; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[i];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<std::uint32_t>(p1);
      c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kBlock; ++i) {
    first[i] = unit(c0[i], c1[i]);
    second[i] = unit(c2[i], c3[i]);
  }
}

// The natural logarithm of 2^-53 <= v <= 1: of the power of two next to v, and 2 atanh(s) of the
// rest, |s| < 0.172, as a series.
BLOOMERY_INLINE double logarithm(double v) {
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E00000000u, kBias = std::uint64_t{64} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const std::uint64_t exponent = (bits - kRootHalf + kBias) >> 52;  // with 64 added
  const double power = static_cast<double>(static_cast<int>(exponent)) - 64.0;
  const double f = std::bit_cast<double>(bits - (exponent << 52) + kBias) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  const double series = polynomial(z, 2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                   2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3);
  return power * std::numbers::ln2 + (2.0 * s + s * z * series);
}

// The cosine of 0 <= x <= 2 pi: x less a multiple of pi/2, whose parts multiply without rounding,
// and the series of sine or cosine.
BLOOMERY_INLINE double cosine(double x) {
  constexpr double kHigh = 0x1.921fb544p+0, kMiddle = 0x1.0b4611a6p-34,
                   kLow = 0x1.3198a2e037073p-69;  // of pi/2
  const int quarter = static_cast<int>(x * (2 / std::numbers::pi) + 0.5);
  const auto n = static_cast<double>(quarter);
  const double y = ((x - n * kHigh) - n * kMiddle) - n * kLow, z = y * y;
  const double s = polynomial(z, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                              1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0);
  const double c = polynomial(z, 1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
                              -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5);
  const double value = (quarter & 1) != 0 ? y + y * z * s : 1.0 + z * c;
  return ((quarter + 1) & 2) != 0 ? -value : value;
}

struct Block {
  RandomKey key;
  double scale;
  const std::uint64_t* indices;
  float* out;
};

// Box-Muller, as random_normal. Says which numbers may be others, and returns how many.
BLOOMERY_INLINE int normals_here(const Block& block, Lanes<int>& uncertain) {
  Lanes<double> first, second;
  uniforms(block.key, block.indices, first, second);
  for (int i = 0; i < kBlock; ++i) {
    first[i] = std::sqrt(-2.0 * logarithm(1.0 - first[i]));
  }
  for (int i = 0; i < kBlock; ++i) {
    first[i] = block.scale * (first[i] * cosine(2.0 * std::numbers::pi * second[i]));
  }
  int count = 0;
  for (int i = 0; i < kBlock; ++i) {
    const auto least = static_cast<float>(first[i] * (1 - kError));
    const auto most = static_cast<float>(first[i] * (1 + kError));
    uncertain[i] = least == most && first[i] != 0 ? 0 : 1;
    count += uncertain[i];
    block.out[i] = least;
  }
  return count;
}

#undef BLOOMERY_INLINE

using Normals = int (*)(const Block&, Lanes<int>&);

int normals(const Block& block, Lanes<int>& uncertain) { return normals_here(block, uncertain); }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) int normals_avx2(const Block& block, Lanes<int>& uncertain) {
  return normals_here(block, uncertain);
}

__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))) int normals_avx512(
    const Block& block, Lanes<int>& uncertain) {
  return normals_here(block, uncertain);
}
#endif

Normals fastest() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return normals_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return normals_avx2;
  }
#endif
  return normals;
}

}  // namespace

void scaled_normals(RandomKey key, double scale, std::span<const std::uint64_t> indices,
                    std::span<float> out) {
  static const Normals block_of = fastest();
  const auto exact = [&](std::size_t i) {
    return static_cast<float>(scale * random_normal(key, indices[i]));
  };
  std::size_t begin = 0;
  Lanes<int> uncertain;
  for (; begin + kBlock <= indices.size(); begin += kBlock) {
    const bool some =
        block_of({key, scale, indices.data() + begin, out.data() + begin}, uncertain) > 0;
    for (std::size_t i = 0; some && i < kBlock; ++i) {
      if (uncertain[i] != 0) {
        out[begin + i] = exact(begin + i);
      }
    }
  }
  for (; begin < indices.size(); ++begin) {
    out[begin] = exact(begin);
  }
}

}  // namespace bloomery
