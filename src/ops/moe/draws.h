// The random numbers of a router, as functions of (key, sample, place, column): the same under
// every layout and on every device, up to the last bits of a logarithm.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/dropout/counter.h"

namespace bloomery {

enum class DrawKind : std::uint8_t { uniform, gumbel };  // in (0, 1); -log(-log(uniform))

// fp32 [tokens, columns], for the tokens of the context's batch, which must have coordinates.
Tensor draw_for_tokens(Context& context, DrawKind kind, RandomKey key, std::int64_t columns);

// y = x * uniform in (1 - epsilon, 1 + epsilon), x [tokens of the batch, columns].
Value jitter(Context& context, const Value& x, float epsilon, RandomKey key);

struct DrawTokens {
  View y;
  TokenPlaces places;
  RandomKey key = 0;
  DrawKind kind = DrawKind::uniform;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DrawTokens&);
void run(OnCuda, Stream&, const DrawTokens&);

// y (+)= x * (1 + epsilon * (2 uniform - 1))
struct Jitter {
  ConstView x;
  View y;
  TokenPlaces places;
  RandomKey key = 0;
  float epsilon = 0;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Jitter&);
void run(OnCuda, Stream&, const Jitter&);

// Four uniform numbers: columns 4 * block and following.
constexpr RandomBlock draw_bits(RandomKey key, std::int64_t sample, std::int32_t place,
                                std::uint32_t block) {
  return philox(key, dropout_counter(sample, place, 0, block));
}
constexpr float uniform_of(std::uint32_t bits) {
  return (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f;
}

}  // namespace bloomery
