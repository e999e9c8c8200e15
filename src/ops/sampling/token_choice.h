// The choice of one token on the host.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "ops/sampling/sampling.h"

namespace bloomery {

// The logarithm of the sum of exponentials. Logits that are not numbers are an Error.
double log_sum_exp(std::span<const float> logits);

// The score of a token that may not come, as Megatron's server has it.
inline constexpr float kBanned = -1e10f;

// A score that is positive is divided by the penalty, another one multiplied by it.
constexpr float penalized(float score, float penalty) {
  return score < 0 ? score * penalty : score / penalty;
}

// What a drawn token's bias falls by.
constexpr float drawn_penalty(double presence, double frequency, bool first) {
  return static_cast<float>(frequency + (first ? presence : 0));
}

// What a token is chosen by, beside the logits.
struct ChoiceState {
  std::span<const std::uint32_t> occurred;  // a bit per token of the sequence, or empty
  std::span<const float> biases;            // by token, or empty
  std::int32_t last = -1;                   // the token before
  RandomKey key = 0;
  std::int32_t drawn = 0;  // with this key before
};
Drawn choose_token(std::span<const float> logits, const SamplingOptions& options,
                   const ChoiceState& state);

// The likeliest tokens, best first, as many as there is room for.
void top_tokens(std::span<const float> logits, std::span<Drawn> best);

// An Error that says that a model's logits are not numbers.
[[noreturn]] void fail_not_finite();

}  // namespace bloomery
