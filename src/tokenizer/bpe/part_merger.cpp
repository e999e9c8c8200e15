#include "tokenizer/bpe/part_merger.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace bloomery {
namespace {

constexpr std::size_t kFewParts = 64;  // above this the queue wins

std::size_t merge_few(const PairTable& pairs, std::uint32_t* parts, std::size_t count) {
  // joined[i]: what parts i and i + 1 become. Signed, because that compares faster in vectors.
  std::int32_t joined[kFewParts];
  const auto join = [&](std::size_t i) {
    return static_cast<std::int32_t>(pairs.find(parts[i], parts[i + 1]));
  };
  for (std::size_t i = 0; i + 1 < count; ++i) {
    joined[i] = join(i);
  }
  while (count > 1) {
    std::int32_t best = INT32_MAX;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      best = std::min(best, joined[i]);
    }
    if (best == static_cast<std::int32_t>(PairTable::kNone)) break;
    std::size_t at = 0;
    while (joined[at] != best) ++at;
    parts[at] = static_cast<std::uint32_t>(best);
    std::copy(parts + at + 2, parts + count, parts + at + 1);
    if (at + 2 < count) {
      std::copy(joined + at + 2, joined + count - 1, joined + at + 1);
      joined[at] = join(at);
    }
    if (at > 0) joined[at - 1] = join(at - 1);
    --count;
  }
  return count;
}

}  // namespace

std::size_t PartMerger::merge(const PairTable& pairs, std::uint32_t* parts, std::size_t count) {
  return count <= kFewParts ? merge_few(pairs, parts, count)
                            : merge_many(pairs, parts, static_cast<std::uint32_t>(count));
}

// The parts are a linked list; the queue holds the pairs that can merge. An entry is stale when
// what stands at its position now becomes something else.
std::size_t PartMerger::merge_many(const PairTable& pairs, std::uint32_t* parts,
                                   std::uint32_t count) {
  queue_.clear();
  previous_.resize(count);
  next_.resize(count);
  joined_.resize(count);
  const auto enter = [&](std::uint32_t left) {
    const std::uint32_t right = next_[left];
    joined_[left] = right < count ? pairs.find(parts[left], parts[right]) : PairTable::kNone;
    if (joined_[left] == PairTable::kNone) return false;
    queue_.push_back(static_cast<std::uint64_t>(joined_[left]) << 32 | left);
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
    const auto result = static_cast<std::uint32_t>(queue_.back() >> 32);
    const auto left = static_cast<std::uint32_t>(queue_.back());
    queue_.pop_back();
    if (joined_[left] != result) continue;
    const std::uint32_t right = next_[left];
    parts[left] = result;
    joined_[right] = PairTable::kNone;
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
