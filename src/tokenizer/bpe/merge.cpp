#include "tokenizer/bpe/merge.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::size_t kScanLimit = 48;  // above this many parts the queue wins
constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t slot_of(std::uint64_t pair, std::size_t mask) {
  return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15 >> 29) & mask;
}

// One pass finds the best pair, the next part moves up: quadratic, and fastest for a word.
void merge_by_scanning(const MergeTable& table, std::vector<TokenId>& parts, Merge& last) {
  while (parts.size() > 1) {
    MergeTable::Found best{MergeTable::kNone, 0};
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const MergeTable::Found found = table.find(parts[i], parts[i + 1]);
      if (found.rank < best.rank) {
        best = found;
        at = i;
      }
    }
    if (best.rank == MergeTable::kNone) {
      return;
    }
    last = {parts[at], parts[at + 1], best.result, best.rank};
    parts[at] = best.result;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// The parts as a linked list and a queue of candidate pairs, (rank, position) in one word. A
// candidate is stale when the rank of the pair that now stands there is another.
void merge_by_queue(const MergeTable& table, std::vector<TokenId>& parts, MergeScratch& scratch) {
  const auto count = static_cast<std::int32_t>(parts.size());
  auto& [last, queue, previous, next] = scratch;
  queue.clear();
  previous.resize(parts.size());
  next.resize(parts.size());
  const auto push = [&](std::int32_t left) {
    const std::int32_t right = next[left];
    if (left < 0 || right == count) return;
    const std::int32_t rank = table.find(parts[left], parts[right]).rank;
    if (rank != MergeTable::kNone) {
      queue.push_back(static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(left));
      std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  };
  for (std::int32_t i = 0; i < count; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) {
    push(i);
  }
  constexpr TokenId kGone = -1;
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto rank = static_cast<std::int32_t>(queue.back() >> 32);
    const auto left = static_cast<std::int32_t>(queue.back() & 0xFFFFFFFF);
    queue.pop_back();
    const std::int32_t right = next[left];
    if (parts[left] == kGone || right == count) continue;
    const MergeTable::Found found = table.find(parts[left], parts[right]);
    if (found.rank != rank) continue;
    last = {parts[left], parts[right], found.result, rank};
    parts[left] = found.result;
    parts[right] = kGone;
    next[left] = next[right];
    if (next[left] < count) {
      previous[next[left]] = left;
    }
    if (previous[left] >= 0) push(previous[left]);
    push(left);
  }
  std::erase(parts, kGone);
}

}  // namespace

MergeTable::MergeTable(std::span<const Merge> merges)
    : slots_(std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 16)), Slot{kEmpty, kNone, 0}) {
  const std::size_t mask = slots_.size() - 1;
  for (const Merge& merge : merges) {
    const std::uint64_t pair = pair_key(merge.left, merge.right);
    std::size_t at = slot_of(pair, mask);
    while (slots_[at].pair != kEmpty && slots_[at].pair != pair) {
      at = (at + 1) & mask;
    }
    slots_[at] = {pair, merge.rank, merge.result};
  }
}

MergeTable::Found MergeTable::find(TokenId left, TokenId right) const {
  const std::uint64_t pair = pair_key(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = slot_of(pair, mask); slots_[at].pair != kEmpty; at = (at + 1) & mask) {
    if (slots_[at].pair == pair) {
      return {slots_[at].rank, slots_[at].result};
    }
  }
  return {kNone, 0};
}

void check_num_parts(std::size_t count) {
  check(count <= MergeTable::kMostParts, "a piece of text of ", count,
        " bytes without a border is too long to encode; split the text");
}

void MergeTable::apply(std::vector<TokenId>& parts, MergeScratch& scratch) const {
  if (parts.size() <= kScanLimit) {
    merge_by_scanning(*this, parts, scratch.last);
  } else {
    check_num_parts(parts.size());
    merge_by_queue(*this, parts, scratch);
  }
}

}  // namespace bloomery
