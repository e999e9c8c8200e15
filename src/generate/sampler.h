// The choice of the next token from a model's logits, as Hugging Face's generation defines it:
// repetition penalty, then temperature, then the top-k, then the top-p of what is left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct SamplingOptions {
  bool greedy = false;
  double temperature = 1;         // 0: greedy
  std::int64_t top_k = 0;         // only the k likeliest tokens (and ties with the last); 0: all
  double top_p = 0;               // only the likeliest tokens that make up this mass; 0: all
  double repetition_penalty = 1;  // of tokens that the sequence has already
  std::uint64_t seed = 1234;
};

struct Choice {
  TokenId token = 0;
  float log_probability = 0;  // what the model itself gives it: of the logits as they came
};

// The logarithm of the sum of exponentials. Logits that are not numbers are an Error.
double log_sum_exp(std::span<const float> logits);

// Scores of tokens that occurred are divided by the penalty if positive, else multiplied by it.
void penalize(std::span<float> scores, std::span<const TokenId> occurred, double penalty);

// The sampler of one sequence. What it draws depends on the seed, the numbers of prompt and sample
// and the count of tokens drawn before, and on nothing else.
class TokenSampler {
 public:
  TokenSampler(const SamplingOptions& options, std::int64_t prompt, std::int64_t sample);

  // A token that the sequence has: of the prompt, or chosen.
  void occurred(TokenId token);
  Choice choose(std::span<const float> logits);

 private:
  struct Candidate {
    float score;  // less the largest, by the temperature
    TokenId token;
  };
  TokenId draw(std::span<const float> scores);
  void keep_top_k();
  void keep_top_p();
  double mass() const;  // of the candidates

  SamplingOptions options_;
  RandomKey key_;
  std::uint64_t drawn_ = 0;
  std::vector<bool> has_occurred_;
  std::vector<TokenId> occurred_;      // each once
  std::vector<float> scores_;          // scratch
  std::vector<Candidate> candidates_;  // that are left; the likeliest has weight 1
};

}  // namespace bloomery
