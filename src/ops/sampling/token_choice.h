// The choice of one token on the host.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "ops/sampling/sampling.h"

namespace bloomery {

// The logarithm of the sum of exponentials. Logits that are not numbers are an Error.
double log_sum_exp(std::span<const float> logits);

// A score that is positive is divided by the penalty, another one multiplied by it.
constexpr float penalized(float score, float penalty) {
  return score < 0 ? score * penalty : score / penalty;
}

// `occurred` has a bit per token, or is empty; `drawn` tokens were drawn with this key before.
Drawn choose_token(std::span<const float> logits, std::span<const std::uint32_t> occurred,
                   const SamplingOptions& options, RandomKey key, std::uint64_t drawn);

// An Error that says that a model's logits are not numbers.
[[noreturn]] void fail_not_finite();

}  // namespace bloomery
