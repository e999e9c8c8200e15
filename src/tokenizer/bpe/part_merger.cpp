#include "tokenizer/bpe/part_merger.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::size_t kFewParts = 96;  // above this the queue wins
constexpr int kPositionBits = 7;
static_assert(kFewParts <= 1 << kPositionBits && MergeRules::kRuleBits + kPositionBits < 31);

// The candidates stay where their left parts are, as rank and position in one number, so that the
// least number is the next merge: finding it is a scan in vectors, and nothing moves.
class FewParts {
 public:
  FewParts(const MergeRules& rules, std::uint32_t* parts, std::size_t count)
      : rules_(rules), parts_(parts), count_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      next_[i] = static_cast<std::uint8_t>(i + 1);
      previous_[i] = static_cast<std::uint8_t>(i - 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
      enter(i);
    }
  }

  std::size_t merge() {
    for (;;) {
      std::int32_t best = kNoCandidate;
      for (std::size_t i = 0; i < count_; ++i) {
        best = std::min(best, candidates_[i]);
      }
      if (best == kNoCandidate) break;
      const std::size_t left = static_cast<std::size_t>(best) & ((1u << kPositionBits) - 1);
      const std::size_t right = next_[left];
      parts_[left] = rules_.result(found_[left]);
      candidates_[right] = kNoCandidate;
      next_[left] = next_[right];
      if (next_[left] < count_) previous_[next_[left]] = static_cast<std::uint8_t>(left);
      enter(left);
      if (left > 0) enter(previous_[left]);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; i = next_[i]) {
      parts_[kept++] = parts_[i];
    }
    return kept;
  }

 private:
  static constexpr std::int32_t kNoCandidate = INT32_MAX;

  void enter(std::size_t left) {
    const std::size_t right = next_[left];
    const std::uint32_t rule =
        right < count_ ? rules_.find(parts_[left], parts_[right]) : MergeRules::kNone;
    found_[left] = rule;
    candidates_[left] = rule == MergeRules::kNone
                            ? kNoCandidate
                            : static_cast<std::int32_t>(rules_.rank(rule) << kPositionBits | left);
  }

  const MergeRules& rules_;
  std::uint32_t* parts_;
  std::size_t count_;
  std::uint8_t next_[kFewParts], previous_[kFewParts];
  std::int32_t candidates_[kFewParts];
  std::uint32_t found_[kFewParts];  // the rule of each candidate
};

}  // namespace

std::size_t PartMerger::merge(const MergeRules& rules, std::uint32_t* parts, std::size_t count) {
  if (count <= kFewParts) return FewParts(rules, parts, count).merge();
  check(count <= kMostParts, "a piece of text of ", count,
        " bytes without a border is too long to encode; split the text");
  return merge_many(rules, parts, static_cast<std::uint32_t>(count));
}

// The parts are a linked list; the queue holds the pairs that can merge. An entry is stale when
// what stands at its position now has another rank.
std::size_t PartMerger::merge_many(const MergeRules& rules, std::uint32_t* parts,
                                   std::uint32_t count) {
  queue_.clear();
  previous_.resize(count);
  next_.resize(count);
  rule_.resize(count);
  const auto enter = [&](std::uint32_t left) {
    const std::uint32_t right = next_[left];
    rule_[left] = right < count ? rules.find(parts[left], parts[right]) : MergeRules::kNone;
    if (rule_[left] == MergeRules::kNone) return false;
    queue_.push_back(static_cast<std::uint64_t>(rules.rank(rule_[left])) << 32 | left);
    return true;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    previous_[i] = i - 1;
    next_[i] = i + 1;
    enter(i);
  }
  std::ranges::make_heap(queue_, std::greater<>());
  const auto push = [&](std::uint32_t left) {
    if (enter(left)) std::ranges::push_heap(queue_, std::greater<>());
  };
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, std::greater<>());
    const auto rank = static_cast<std::uint32_t>(queue_.back() >> 32);
    const auto left = static_cast<std::uint32_t>(queue_.back());
    queue_.pop_back();
    if (rule_[left] == MergeRules::kNone || rules.rank(rule_[left]) != rank) continue;
    const std::uint32_t right = next_[left];
    parts[left] = rules.result(rule_[left]);
    rule_[right] = MergeRules::kNone;
    next_[left] = next_[right];
    if (next_[left] < count) previous_[next_[left]] = left;
    push(left);
    if (left > 0) push(previous_[left]);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < count; i = next_[i]) {
    parts[kept++] = parts[i];
  }
  return kept;
}

}  // namespace bloomery
