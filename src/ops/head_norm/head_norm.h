// RMS norm of each query and key head before attention (Qwen3): one gain for the channels of all
// query heads, one for those of all key heads.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

struct HeadNormOptions {
  std::int64_t num_groups = 1;       // key/value heads held here
  std::int64_t heads_per_group = 1;  // query heads of each
  std::int64_t head_dim = 1;
  float epsilon = 1e-6f;
  bool one_plus_gain = false;  // multiply by 1 + gain
};

// qkv: [tokens, num_groups, heads_per_group + 2, head_dim] as attention reads it; gains [head_dim].
// Query and key heads x become x / sqrt(mean(x^2) + epsilon) * gain, value heads stay.
Value head_norm(Context& context, const Value& qkv, Parameter& query_gain, Parameter& key_gain,
                const HeadNormOptions& options);

// Tokens whose gradients of the gains are summed together.
inline constexpr std::int64_t kTokensPerHeadNormPartial = 32;

struct HeadNormForward {
  HeadNormOptions options;
  std::int64_t num_tokens = 0;
  ConstView x, query_gain, key_gain;
  View y;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const HeadNormForward&);
void run(OnCuda, Stream&, const HeadNormForward&);

// With r the inverse rms of a head, h = x r and g = dy * gain (or dy * (1 + gain)):
//   dx (+)= r * (g - h * mean(g * h)),  of value heads dy,
// and per block of tokens partials[.][0], [.][1] = sums of dy * h over query and over key heads.
struct HeadNormBackward {
  HeadNormOptions options;
  std::int64_t num_tokens = 0;
  ConstView dy, x, query_gain, key_gain;
  View dx;  // may be null
  bool add = false;
  View partials;  // [blocks of tokens, 2, head_dim], in the accumulation dtype
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const HeadNormBackward&);
void run(OnCuda, Stream&, const HeadNormBackward&);

}  // namespace bloomery
