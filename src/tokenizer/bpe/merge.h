// Byte-pair merging, shared by every kind of BPE: which pairs of tokens join, and in which order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

struct Merge {
  TokenId left, right, result;
  std::int32_t rank;  // lower ranks merge first; equal ranks are allowed
};

// Scratch of one thread.
struct MergeScratch {
  Merge last;  // the last merge that was made
  std::vector<std::uint64_t> queue;
  std::vector<std::int32_t> previous, next;
};

class MergeTable {
 public:
  // Of one piece of text: places are counted in 32 bits.
  static constexpr std::size_t kMostParts = INT32_MAX;
  struct Found {
    std::int32_t rank;  // kNone: these two do not merge
    TokenId result;
  };
  static constexpr std::int32_t kNone = INT32_MAX;

  explicit MergeTable(std::span<const Merge> merges);

  Found find(TokenId left, TokenId right) const;
  // Merges neighbours in `parts` in place until none merge: the lowest rank first, the leftmost
  // among equals. A scan for few parts, a queue for many: O(n log n) whatever the input.
  // More than kMostParts are an Error.
  void apply(std::vector<TokenId>& parts, MergeScratch& scratch) const;

 private:
  struct Slot {
    std::uint64_t pair;
    std::int32_t rank;
    TokenId result;
  };
  std::vector<Slot> slots_;  // open addressing, a power of two
};

// An Error if a piece of so many parts cannot be merged.
void check_num_parts(std::size_t count);

}  // namespace bloomery
