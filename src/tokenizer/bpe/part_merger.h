// Merging the parts of one piece: lowest rank first, leftmost among equals, until nothing merges.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/bpe/pair_table.h"

namespace bloomery {

// One thread's scratch memory for it.
class PartMerger {
 public:
  // `parts` are numbers of the table's pairs, where a lower result merges first. Merges in place
  // and returns how many are left. A scan for few parts and a queue for many: O(n log n) for any
  // input.
  std::size_t merge(const PairTable& pairs, std::uint32_t* parts, std::size_t count);

 private:
  std::size_t merge_many(const PairTable& pairs, std::uint32_t* parts, std::uint32_t count);

  std::vector<std::uint64_t> queue_;                     // result, then position of the left part
  std::vector<std::uint32_t> previous_, next_, joined_;  // joined: what a part and the next become
};

}  // namespace bloomery
