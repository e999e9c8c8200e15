// Uniform noise that is added to activations in training (NEFTune): a function of (key, sample,
// place, channel), as dropout is.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"
#include "ops/dropout/counter.h"

namespace bloomery {

struct NoiseOptions {
  float size = 0;  // from -size to size
  RandomKey key = 0;
  TokenRange tokens;  // that the rows stand for
};

// x [tokens, channels], in place; nobody has read it yet. Gradients pass as they are.
void add_noise(Context& context, const Value& x, const NoiseOptions& options);

// One of 65,536 equally likely numbers between -1 and 1: of sixteen random bits.
constexpr float centred(std::uint32_t bits) {
  return (static_cast<float>(bits & 0xFFFFu) + 0.5f) / 32768.0f - 1.0f;
}

// Row t is token first_token + t.
struct AddNoise {
  View x;
  TokenPlaces places;
  std::int64_t first_token = 0;
  RandomKey key = 0;
  float size = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AddNoise&);
void run(OnCuda, Stream&, const AddNoise&);

}  // namespace bloomery
