// Merging the parts of one piece: lowest rank first, leftmost among equals, until nothing merges.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/bpe/merge_rules.h"

namespace bloomery {

// One thread's scratch memory for it.
class PartMerger {
 public:
  // Merges in place and returns how many parts are left. A scan for few parts and a queue for many:
  // O(n log n) for any input. More than kMostParts are an Error.
  std::size_t merge(const MergeRules& rules, std::uint32_t* parts, std::size_t count);
  static constexpr std::size_t kMostParts = INT32_MAX;

 private:
  std::size_t merge_many(const MergeRules& rules, std::uint32_t* parts, std::uint32_t count);

  std::vector<std::uint64_t> queue_;                   // rank, then position of the left part
  std::vector<std::uint32_t> previous_, next_, rule_;  // rule: that joins a part and the next
};

}  // namespace bloomery
