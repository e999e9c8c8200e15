#include <cmath>

#include "ops/common/convert.h"
#include "ops/common/fast_math.h"
#include "ops/rotary/rotary.h"

namespace bloomery {
namespace {

constexpr std::int64_t kNumbersPerTask = 65536;

// Cosine and sine of the angles of one token.
template <class Real>
struct Angles {
  alignas(64) Real cosine[kMaxRotaryPairs];
  alignas(64) Real sine[kMaxRotaryPairs];

  void set(const Rotary& k, std::int32_t position) {
    const double where = k.inverse ? -static_cast<double>(position) : position;
    const auto magnitude = static_cast<Real>(k.table.magnitude);
    for (std::int64_t i = 0; i < k.table.num_pairs; ++i) {
      const double angle = where * k.table.frequencies[i];
      if constexpr (std::is_same_v<Real, double>) {
        cosine[i] = std::cos(angle) * magnitude;
        sine[i] = std::sin(angle) * magnitude;
      } else {
        const SinCos both = fast_sincos(angle);
        cosine[i] = both.cos * magnitude;
        sine[i] = both.sin * magnitude;
      }
    }
  }
};

// (x, y) -> (x cos - y sin, y cos + x sin); the two channels of pair i are at i * kStep and that
// plus `distance`.
template <int kStep, class T>
void turn_head(T* head, const Angles<Accumulator<T>>& angles, std::int64_t num_pairs,
               std::int64_t distance) {
  using Real = Accumulator<T>;
  for (std::int64_t i = 0; i < num_pairs; ++i) {
    T* const first = head + i * kStep;
    T* const second = first + distance;
    const Real x = load(first), y = load(second);
    store(first, x * angles.cosine[i] - y * angles.sine[i]);
    store(second, y * angles.cosine[i] + x * angles.sine[i]);
  }
}

template <class T>
void turn(Stream& stream, const Rotary& k) {
  const auto* positions = k.positions.as<std::int32_t>();
  const std::int64_t num_pairs = k.table.num_pairs;
  const std::int64_t row = k.num_groups * k.heads * k.head_dim;
  const std::int64_t grain = std::max<std::int64_t>(1, kNumbersPerTask / row);
  stream.device().pool().for_ranges(k.num_tokens, grain, [&](std::int64_t begin, std::int64_t end) {
    Angles<Accumulator<T>> angles;
    for (std::int64_t token = begin; token < end; ++token) {
      if (token == begin || positions[token] != positions[token - 1]) {
        angles.set(k, positions[token]);
      }
      for (std::int64_t group = 0; group < k.num_groups; ++group) {
        T* const heads = k.data.as<T>() + token * row + group * k.heads * k.head_dim;
        for (std::int64_t h = 0; h < k.turned; ++h) {
          if (k.interleaved) {
            turn_head<2>(heads + h * k.head_dim, angles, num_pairs, 1);
          } else {
            turn_head<1>(heads + h * k.head_dim, angles, num_pairs, num_pairs);
          }
        }
      }
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const Rotary& k) {
  dispatch_floating(k.data.dtype, [&](auto tag) { turn<typename decltype(tag)::type>(stream, k); });
}

}  // namespace bloomery
