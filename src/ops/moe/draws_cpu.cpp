#include <algorithm>
#include <cmath>

#include "ops/common/convert.h"
#include "ops/moe/draws.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 256;  // tokens per item of work

// Calls body(element, uniform number) for the columns of the tokens.
template <class Body>
void for_draws(Stream& stream, const TokenPlaces& places, RandomKey key, std::int64_t tokens,
               std::int64_t columns, const Body& body) {
  stream.device().pool().for_ranges(tokens, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t first = 0; first < columns; first += 4) {
        const RandomBlock bits = draw_bits(key, places.sample(t), places.place(t),
                                           static_cast<std::uint32_t>(first / 4));
        for (std::int64_t c = first; c < std::min(first + 4, columns); ++c) {
          body(t * columns + c, uniform_of(bits[static_cast<std::size_t>(c - first)]));
        }
      }
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const DrawTokens& k) {
  float* const y = k.y.as<float>();
  for_draws(stream, k.places, k.key, k.y.rows(), k.y.columns(), [&](std::int64_t i, float uniform) {
    y[i] = k.kind == DrawKind::gumbel ? -std::log(-std::log(uniform)) : uniform;
  });
}

template <>
void run(ThisCpu, Stream& stream, const Jitter& k) {
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    for_draws(stream, k.places, k.key, k.x.rows(), k.x.columns(),
              [&](std::int64_t i, float uniform) {
                const Real factor = 1 + Real(k.epsilon) * (2 * Real(uniform) - 1);
                const Real value = factor * load(k.x.as<T>() + i);
                T* const y = k.y.as<T>() + i;
                store(y, k.add ? load(y) + value : value);
              });
  });
}

}  // namespace bloomery
