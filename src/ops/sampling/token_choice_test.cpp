#include "ops/sampling/token_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

std::vector<float> random_logits(std::size_t count, double scale, std::uint64_t seed) {
  const RandomKey key = random_key(seed, "logits");
  std::vector<float> logits;
  for (std::size_t i = 0; i < count; ++i) {
    logits.push_back(static_cast<float>(scale * random_normal(key, i)));
  }
  return logits;
}

TEST(TokenChoice, PenaltyOfNegativeScoresMultiplies) {
  EXPECT_EQ(penalized(2, 2), 1);
  EXPECT_EQ(penalized(-2, 2), -4);
}

TEST(TokenChoice, LogSumExp) {
  for (const std::size_t count : {1, 511, 512, 513, 50257}) {
    const std::vector<float> logits = random_logits(count, 4, count);
    double sum = 0;
    for (const float x : logits) {
      sum += std::exp(static_cast<double>(x));
    }
    EXPECT_NEAR(log_sum_exp(logits), std::log(sum), 1e-6) << count;
  }
  EXPECT_NEAR(log_sum_exp(std::vector<float>{-INFINITY, 500, 500}), 500 + std::log(2.0), 1e-6);
}

TEST(TokenChoice, RefusesLogitsThatAreNoNumbers) {
  EXPECT_THROW(log_sum_exp(std::vector<float>{1, NAN, 2}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{NAN, 1}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{1, INFINITY}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{-INFINITY, -INFINITY}), Error);
}

}  // namespace
}  // namespace bloomery
