#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

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

// The probabilities by definition, in double precision.
std::vector<double> reference(const std::vector<float>& logits, const SamplingOptions& o,
                              const std::vector<TokenId>& occurred) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (const TokenId token : occurred) {
    double& score = scores[static_cast<std::size_t>(token)];
    score = score < 0 ? score * o.repetition_penalty : score / o.repetition_penalty;
  }
  std::vector<std::size_t> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    scores[i] /= o.temperature;
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const auto k = static_cast<std::size_t>(o.top_k);
  std::vector<double> weights(scores.size(), 0);
  double total = 0, before = 0, kept = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (k == 0 || scores[order[i]] >= scores[order[std::min(k, order.size()) - 1]]) {
      weights[order[i]] = std::exp(scores[order[i]]);
      total += weights[order[i]];
    }
  }
  for (const std::size_t i : order) {
    const double weight = weights[i] / total;
    weights[i] = o.top_p == 0 || before < o.top_p ? weight : 0;
    before += weight;
    kept += weights[i];
  }
  for (double& weight : weights) {
    weight /= kept;
  }
  return weights;
}

TEST(TokenSampler, DrawsByTheDefinitions) {
  const std::vector<float> logits = random_logits(300, 2, 1);
  const std::vector<TokenId> occurred = {3, 7, 299, 12};
  const std::vector<SamplingOptions> all = {
      {.temperature = 1},
      {.temperature = 0.5},
      {.temperature = 1.7, .top_k = 9},
      {.temperature = 0.8, .top_p = 0.7},
      {.temperature = 1.2, .top_p = 0.97},
      {.temperature = 1.5, .top_k = 40, .top_p = 0.6, .repetition_penalty = 1.4},
      {.temperature = 1, .top_p = 0.001},
  };
  constexpr int kDraws = 20000;
  for (const SamplingOptions& options : all) {
    const std::vector<double> expected = reference(logits, options, occurred);
    std::vector<int> counts(logits.size(), 0);
    for (int i = 0; i < kDraws; ++i) {
      TokenSampler sampler(options, 5, i);
      for (const TokenId token : occurred) {
        sampler.occurred(token);
      }
      ++counts[static_cast<std::size_t>(sampler.choose(logits).token)];
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double mean = expected[i] * kDraws;
      EXPECT_LE(std::abs(counts[i] - mean), 5 * std::sqrt(mean) + 1) << i;
      EXPECT_TRUE(expected[i] > 0 || counts[i] == 0) << i;
    }
  }
}

TEST(TokenSampler, TopKKeepsTies) {
  const std::vector<float> logits = {1, 2, 2, 2, 0};
  std::map<TokenId, int> counts;
  for (int i = 0; i < 300; ++i) {
    ++counts[TokenSampler({.top_k = 2}, 0, i).choose(logits).token];
  }
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_FALSE(counts.contains(0));
}

TEST(TokenSampler, DependsOnSeedPromptSampleAndPositionOnly) {
  const std::vector<float> logits = random_logits(1000, 0.1, 2);
  const auto draws = [&](std::uint64_t seed, std::int64_t prompt, std::int64_t sample) {
    TokenSampler sampler({.seed = seed}, prompt, sample);
    std::vector<TokenId> tokens;
    for (int i = 0; i < 8; ++i) {
      tokens.push_back(sampler.choose(logits).token);
    }
    return tokens;
  };
  EXPECT_EQ(draws(1, 2, 3), draws(1, 2, 3));
  EXPECT_NE(draws(1, 2, 3), draws(2, 2, 3));
  EXPECT_NE(draws(1, 2, 3), draws(1, 3, 3));
  EXPECT_NE(draws(1, 2, 3), draws(1, 2, 4));
}

TEST(TokenSampler, GreedyTakesTheBestAfterThePenalty) {
  const std::vector<float> logits = {-1, 3, 2.5f, -0.5f};
  for (const SamplingOptions& options :
       {SamplingOptions{.greedy = true}, SamplingOptions{.temperature = 0},
        SamplingOptions{.top_k = 1}}) {
    EXPECT_EQ(TokenSampler(options, 0, 0).choose(logits).token, 1);
  }
  TokenSampler sampler({.greedy = true, .repetition_penalty = 1.25}, 0, 0);
  const Choice first = sampler.choose(logits), second = sampler.choose(logits);
  EXPECT_EQ(first.token, 1);
  EXPECT_EQ(second.token, 2);  // 3 / 1.25 < 2.5
  // The model's own probability, without the penalty.
  const double total = std::exp(-1.0) + std::exp(3.0) + std::exp(2.5) + std::exp(-0.5);
  EXPECT_NEAR(first.log_probability, 3 - std::log(total), 1e-6);
  EXPECT_NEAR(second.log_probability, 2.5 - std::log(total), 1e-6);
}

TEST(TokenSampler, PenaltyOfNegativeScoresMultiplies) {
  std::vector<float> scores = {2, -2, 2, -2};
  penalize(scores, std::vector<TokenId>{0, 1}, 2);
  EXPECT_EQ(scores, (std::vector<float>{1, -4, 2, -2}));
}

TEST(TokenSampler, LogSumExp) {
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

TEST(TokenSampler, RefusesLogitsThatAreNoNumbers) {
  EXPECT_THROW(log_sum_exp(std::vector<float>{1, NAN, 2}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{NAN, 1}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{1, INFINITY}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{-INFINITY, -INFINITY}), Error);
}

}  // namespace
}  // namespace bloomery
