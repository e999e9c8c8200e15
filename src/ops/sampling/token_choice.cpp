#include "ops/sampling/token_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
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

std::vector<float> with_penalty(std::span<const float> logits,
                                std::span<const std::uint32_t> occurred, double penalty) {
  std::vector<float> scores(logits.begin(), logits.end());
  for (std::size_t word = 0; word < occurred.size(); ++word) {
    for (std::uint32_t bits = occurred[word]; bits != 0; bits &= bits - 1) {
      float& score = scores[word * 32 + static_cast<std::size_t>(std::countr_zero(bits))];
      score = penalized(score, static_cast<float>(penalty));
    }
  }
  return scores;
}

std::int32_t choose(std::span<const float> scores, const SamplingOptions& options, RandomKey key,
                    std::uint64_t drawn) {
  if (options.is_greedy()) {
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) -
                                     scores.begin());
  }
  Candidates candidates(scores, options.temperature);
  if (options.has_top_k(static_cast<std::int64_t>(scores.size()))) {
    candidates.keep_top_k(static_cast<std::size_t>(options.top_k));
  }
  if (options.has_top_p()) {
    candidates.keep_top_p(options.top_p);
  }
  return candidates.draw(random_uniform(key, drawn));
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

Drawn choose_token(std::span<const float> logits, std::span<const std::uint32_t> occurred,
                   const SamplingOptions& options, RandomKey key, std::uint64_t drawn) {
  const double total = log_sum_exp(logits);
  const std::int32_t token =
      options.repetition_penalty == 1
          ? choose(logits, options, key, drawn)
          : choose(with_penalty(logits, occurred, options.repetition_penalty), options, key, drawn);
  return {token, static_cast<float>(logits[static_cast<std::size_t>(token)] - total)};
}

}  // namespace bloomery
