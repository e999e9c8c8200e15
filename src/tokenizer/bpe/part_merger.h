// Merging the parts of one piece: lowest rank first, leftmost among equals, until nothing merges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"

namespace bloomery {

// What two neighbours become, and when.
struct Join {
  static constexpr std::uint32_t kNever = UINT32_MAX;
  static constexpr std::uint32_t kMaxRanks = 1u << 24;

  std::uint32_t rank = kNever;  // below kMaxRanks, or kNever
  std::uint32_t part = 0;
};

// One thread's scratch memory for it. `find(left, right, end)` says what becomes of the part that
// began at place `left` of the piece and its neighbour, which began at `right`, the next one
// beginning at `end`: a Join.
class PartMerger {
 public:
  // Merges in place and returns how many parts are left. A scan for few parts and a queue for many:
  // O(n log n) for any input. More than kMostParts are an Error.
  template <class Find>
  std::size_t merge(const Find& find, std::uint32_t* parts, std::size_t count) {
    if (count <= kFewParts) return merge_few(find, parts, count);
    check(count <= kMostParts, "a piece of text of ", count,
          " bytes without a border is too long to encode; split the text");
    return merge_many(find, parts, static_cast<std::uint32_t>(count));
  }
  static constexpr std::size_t kMostParts = INT32_MAX;

 private:
  static constexpr std::size_t kFewParts = 96;  // above this the queue wins
  static constexpr int kPositionBits = 7;
  static_assert(kFewParts <= 1 << kPositionBits && Join::kMaxRanks <= 1u << (31 - kPositionBits));
  static constexpr std::int32_t kNoCandidate = INT32_MAX;

  // The candidates stay where their left parts are, as rank and position in one number, so that the
  // least number is the next merge: finding it is a scan in vectors, and nothing moves.
  template <class Find>
  static std::size_t merge_few(const Find& find, std::uint32_t* parts, std::size_t count) {
    std::uint8_t next[kFewParts], previous[kFewParts];
    std::int32_t candidates[kFewParts];
    std::uint32_t joined[kFewParts];
    const auto enter = [&](std::size_t left) {
      const std::size_t right = next[left];
      const Join join =
          right < count ? find(left, right, right + 1 < count ? next[right] : count) : Join{};
      joined[left] = join.part;
      candidates[left] = join.rank == Join::kNever
                             ? kNoCandidate
                             : static_cast<std::int32_t>(join.rank << kPositionBits | left);
    };
    for (std::size_t i = 0; i < count; ++i) {
      next[i] = static_cast<std::uint8_t>(i + 1);
      previous[i] = static_cast<std::uint8_t>(i - 1);
    }
    for (std::size_t i = 0; i < count; ++i) enter(i);
    for (;;) {
      std::int32_t best = kNoCandidate;
      for (std::size_t i = 0; i < count; ++i) best = std::min(best, candidates[i]);
      if (best == kNoCandidate) break;
      const std::size_t left = static_cast<std::size_t>(best) & ((1u << kPositionBits) - 1);
      const std::size_t right = next[left];
      parts[left] = joined[left];
      candidates[right] = kNoCandidate;
      next[left] = next[right];
      if (next[left] < count) previous[next[left]] = static_cast<std::uint8_t>(left);
      enter(left);
      if (left > 0) enter(previous[left]);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; i = next[i]) parts[kept++] = parts[i];
    return kept;
  }

  // The parts are a linked list; the queue holds the pairs that can merge. An entry is stale when
  // what stands at its position now has another rank.
  template <class Find>
  std::size_t merge_many(const Find& find, std::uint32_t* parts, std::uint32_t count) {
    queue_.clear();
    previous_.resize(count);
    next_.resize(count);
    joins_.resize(count);
    const auto enter = [&](std::uint32_t left) {
      const std::uint32_t right = next_[left];
      joins_[left] = right < count ? find(left, right, next_[right]) : Join{};
      if (joins_[left].rank == Join::kNever) return false;
      queue_.push_back(static_cast<std::uint64_t>(joins_[left].rank) << 32 | left);
      return true;
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      previous_[i] = i - 1;
      next_[i] = i + 1;
    }
    for (std::uint32_t i = 0; i < count; ++i) enter(i);
    std::ranges::make_heap(queue_, std::greater<>());
    const auto push = [&](std::uint32_t left) {
      if (enter(left)) std::ranges::push_heap(queue_, std::greater<>());
    };
    while (!queue_.empty()) {
      std::ranges::pop_heap(queue_, std::greater<>());
      const auto rank = static_cast<std::uint32_t>(queue_.back() >> 32);
      const auto left = static_cast<std::uint32_t>(queue_.back());
      queue_.pop_back();
      if (joins_[left].rank != rank) continue;
      const std::uint32_t right = next_[left];
      parts[left] = joins_[left].part;
      joins_[right].rank = Join::kNever;
      next_[left] = next_[right];
      if (next_[left] < count) previous_[next_[left]] = left;
      push(left);
      if (left > 0) push(previous_[left]);
    }
    std::size_t kept = 0;
    for (std::uint32_t i = 0; i < count; i = next_[i]) parts[kept++] = parts[i];
    return kept;
  }

  std::vector<std::uint64_t> queue_;  // rank, then position of the left part
  std::vector<std::uint32_t> previous_, next_;
  std::vector<Join> joins_;  // of each part and the next
};

}  // namespace bloomery
