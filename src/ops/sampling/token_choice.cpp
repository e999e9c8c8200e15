#include "ops/sampling/token_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "ops/common/fast_math.h"

namespace bloomery {
namespace {

struct Candidate {
  float score;  // less the largest, by the temperature
  std::int32_t token;
};

// The order by which candidates are kept: likelier first, then by number.
constexpr auto kLikelier = [](const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
};

// The candidates that are left; the likeliest has weight 1.
class Candidates {
 public:
  Candidates(std::span<const float> scores, double temperature) : left_(scores.size()) {
    const float largest = *std::max_element(scores.begin(), scores.end());
    const auto divisor = static_cast<float>(temperature);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      left_[i] = {(scores[i] - largest) / divisor, static_cast<std::int32_t>(i)};
    }
  }

  void keep_top_k(std::size_t k) {
    const auto last = left_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(left_.begin(), last, left_.end(), kLikelier);
    const float least = last->score;
    std::erase_if(left_, [least](const Candidate& each) { return each.score < least; });
    std::sort(left_.begin(), left_.end(), kLikelier);
  }

  // A token is kept if those likelier than it have less than top_p of the mass. Only as many are
  // sorted as are needed.
  void keep_top_p(double top_p) {
    const std::size_t size = left_.size();
    const double wanted = top_p * mass();
    double before = 0;
    std::size_t kept = 0;
    for (std::size_t sorted = 0, next = 64; kept == sorted && kept < size; next *= 4) {
      next = std::min(next, size);
      std::partial_sort(left_.begin() + static_cast<std::ptrdiff_t>(sorted),
                        left_.begin() + static_cast<std::ptrdiff_t>(next), left_.end(), kLikelier);
      for (sorted = next; kept < sorted && before < wanted; ++kept) {
        before += fast_exp(left_[kept].score);
      }
    }
    left_.resize(kept);
  }

  void keep_from(float least) {
    std::erase_if(left_, [least](const Candidate& each) { return each.score < least; });
  }

  std::int32_t draw(double uniform) const {
    double left = uniform * mass();
    for (const Candidate& each : left_) {
      left -= fast_exp(each.score);
      if (left < 0) {
        return each.token;
      }
    }
    return left_.front().token;  // rounding: the random number was nearly 1
  }

 private:
  double mass() const {
    double sum = 0;
    for (const Candidate& each : left_) {
      sum += fast_exp(each.score);
    }
    return sum;
  }

  std::vector<Candidate> left_;
};

std::vector<float> adjusted(std::span<const float> logits, const SamplingOptions& options,
                            const ChoiceState& state) {
  std::vector<float> scores(logits.begin(), logits.end());
  for (std::size_t word = 0; options.repetition_penalty != 1 && word < state.occurred.size();
       ++word) {
    for (std::uint32_t bits = state.occurred[word]; bits != 0; bits &= bits - 1) {
      float& score = scores[word * 32 + static_cast<std::size_t>(std::countr_zero(bits))];
      score = penalized(score, static_cast<float>(options.repetition_penalty));
    }
  }
  for (std::size_t i = 0; i < state.biases.size(); ++i) {
    scores[i] += state.biases[i];
  }
  if (options.banned >= 0 && state.last == options.banned_after) {
    scores[static_cast<std::size_t>(options.banned)] = kBanned;
  }
  return scores;
}

std::int32_t choose(std::span<const float> scores, const SamplingOptions& options,
                    const ChoiceState& state) {
  if (options.is_greedy()) {
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) -
                                     scores.begin());
  }
  Candidates candidates(scores, options.temperature);
  if (options.has_top_k(static_cast<std::int64_t>(scores.size()))) {
    candidates.keep_top_k(static_cast<std::size_t>(options.top_k));
  }
  if (options.has_top_p()) {
    candidates.keep_top_p(options.top_p_after(state.drawn));
  }
  if (options.min_p > 0) {
    candidates.keep_from(static_cast<float>(std::log(options.min_p)));
  }
  return candidates.draw(random_uniform(state.key, static_cast<std::uint64_t>(state.drawn)));
}

}  // namespace

void fail_not_finite() {
  throw Error(
      "generation: the model's logits are not finite numbers; the checkpoint may be damaged, or "
      "its numbers overflow in this dtype: try --dtype fp32");
}

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
  if (!std::isfinite(largest) || !std::isfinite(sum)) {
    fail_not_finite();
  }
  return largest + std::log(sum);
}

Drawn choose_token(std::span<const float> logits, const SamplingOptions& options,
                   const ChoiceState& state) {
  const double total = log_sum_exp(logits);
  const bool plain = options.repetition_penalty == 1 && state.biases.empty() && options.banned < 0;
  const std::int32_t token = plain ? choose(logits, options, state)
                                   : choose(adjusted(logits, options, state), options, state);
  return {token, static_cast<float>(logits[static_cast<std::size_t>(token)] - total)};
}

void top_tokens(std::span<const float> logits, std::span<Drawn> best) {
  const double total = log_sum_exp(logits);
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t count = std::min(best.size(), logits.size());
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    likelier);
  for (std::size_t i = 0; i < best.size(); ++i) {
    best[i] = i < count
                  ? Drawn{order[i],
                          static_cast<float>(logits[static_cast<std::size_t>(order[i])] - total)}
                  : Drawn{};
  }
}

}  // namespace bloomery
