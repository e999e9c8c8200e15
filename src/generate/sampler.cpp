#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/common/fast_math.h"

namespace bloomery {

double log_sum_exp(std::span<const float> logits) {
  check(!logits.empty(), "generation: no logits");
  constexpr std::size_t kBlock = 512;  // summed in single precision, the blocks in double
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (std::size_t first = 0; first < logits.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, logits.size() - first);
    float lanes[16] = {};
    for (std::size_t i = 0; i < count; ++i) {
      lanes[i % 16] += fast_exp(logits[first + i] - largest);
    }
    for (const float lane : lanes) {
      sum += lane;
    }
  }
  check(std::isfinite(largest) && std::isfinite(sum),
        "generation: the model's logits are not finite numbers; the checkpoint may be damaged, or "
        "its numbers overflow in this dtype: try --dtype fp32");
  return largest + std::log(sum);
}

void penalize(std::span<float> scores, std::span<const TokenId> occurred, double penalty) {
  const auto factor = static_cast<float>(penalty);
  for (const TokenId token : occurred) {
    float& score = scores[static_cast<std::size_t>(token)];
    score = score < 0 ? score * factor : score / factor;
  }
}

TokenSampler::TokenSampler(const SamplingOptions& options, std::int64_t prompt, std::int64_t sample)
    : options_(options),
      key_(random_key(options.seed, concat("generate/prompt ", prompt, "/sample ", sample))) {}

void TokenSampler::occurred(TokenId token) {
  const auto index = static_cast<std::size_t>(token);
  if (index >= has_occurred_.size()) {
    has_occurred_.resize(index + 1, false);
  }
  if (!has_occurred_[index]) {
    has_occurred_[index] = true;
    occurred_.push_back(token);
  }
}

Choice TokenSampler::choose(std::span<const float> logits) {
  const double total = log_sum_exp(logits);
  std::span<const float> scores = logits;
  if (options_.repetition_penalty != 1) {
    scores_.assign(logits.begin(), logits.end());
    penalize(scores_, occurred_, options_.repetition_penalty);
    scores = scores_;
  }
  Choice choice;
  if (options_.greedy || options_.temperature == 0 || options_.top_k == 1) {
    const auto best = std::max_element(scores.begin(), scores.end());
    choice.token = static_cast<TokenId>(best - scores.begin());
  } else {
    choice.token = draw(scores);
  }
  ++drawn_;
  occurred(choice.token);
  choice.log_probability =
      static_cast<float>(logits[static_cast<std::size_t>(choice.token)] - total);
  return choice;
}

TokenId TokenSampler::draw(std::span<const float> scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  const auto temperature = static_cast<float>(options_.temperature);
  candidates_.resize(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    candidates_[i] = {(scores[i] - largest) / temperature, static_cast<TokenId>(i)};
  }
  keep_top_k();
  keep_top_p();
  double left = random_uniform(key_, drawn_) * mass();
  for (const Candidate& each : candidates_) {
    left -= fast_exp(each.score);
    if (left < 0) {
      return each.token;
    }
  }
  return candidates_.front().token;  // rounding: the random number was nearly 1
}

double TokenSampler::mass() const {
  double sum = 0;
  for (const Candidate& each : candidates_) {
    sum += fast_exp(each.score);
  }
  return sum;
}

// The order by which candidates are kept: likelier first, then by number.
constexpr auto kLikelier = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
};

void TokenSampler::keep_top_k() {
  const auto k = static_cast<std::size_t>(options_.top_k);
  if (k == 0 || k >= candidates_.size()) {
    return;
  }
  const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::nth_element(candidates_.begin(), last, candidates_.end(), kLikelier);
  const float least = last->score;
  std::erase_if(candidates_, [least](const Candidate& each) { return each.score < least; });
  std::sort(candidates_.begin(), candidates_.end(), kLikelier);
}

// A token is kept if those likelier than it have less than top_p of the mass. Only as many are
// sorted as are needed.
void TokenSampler::keep_top_p() {
  if (options_.top_p <= 0 || options_.top_p >= 1) {
    return;
  }
  const std::size_t size = candidates_.size();
  const double wanted = options_.top_p * mass();
  double before = 0;
  std::size_t kept = 0;
  for (std::size_t sorted = 0, next = 64; kept == sorted && kept < size; next *= 4) {
    next = std::min(next, size);
    std::partial_sort(candidates_.begin() + static_cast<std::ptrdiff_t>(sorted),
                      candidates_.begin() + static_cast<std::ptrdiff_t>(next), candidates_.end(),
                      kLikelier);
    for (sorted = next; kept < sorted && before < wanted; ++kept) {
      before += fast_exp(candidates_[kept].score);
    }
  }
  candidates_.resize(kept);
}

}  // namespace bloomery
