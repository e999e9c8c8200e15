// What the learner of merges knows about each pair of neighbouring tokens.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace bloomery {

struct TokenPair {
  std::uint32_t left, right;

  friend auto operator<=>(const TokenPair&, const TokenPair&) = default;
};

struct PairRecord {
  static constexpr std::uint32_t kNoList = ~std::uint32_t{0};

  TokenPair pair{0, 0};
  std::int64_t count = 0;          // in all words, each as often as it came
  std::uint32_t list = kNoList;    // where the places found by the merge under way are kept
  std::uint32_t newest = kNoList;  // the last list of this pair that was put into the queue
  bool used = false;
};

// A hash table of records; none is ever removed.
class PairCounts {
 public:
  PairCounts() : slots_(kFirst) {}

  // The record, made if need be. Valid until the next call.
  PairRecord& at(TokenPair pair) {
    if (2 * used_ >= slots_.size()) grow();
    PairRecord& record = slot_of(pair);
    if (!record.used) {
      record.pair = pair;
      record.used = true;
      ++used_;
    }
    return record;
  }

 private:
  static constexpr std::size_t kFirst = 1 << 12;

  PairRecord& slot_of(TokenPair pair) {
    const std::uint64_t key = static_cast<std::uint64_t>(pair.left) << 32 | pair.right;
    const std::uint64_t mixed = key * 0x9E3779B97F4A7C15;
    for (std::size_t at = static_cast<std::size_t>(mixed >> 24);; ++at) {
      PairRecord& record = slots_[at & (slots_.size() - 1)];
      if (!record.used || record.pair == pair) return record;
    }
  }

  void grow() {
    std::vector<PairRecord> old(2 * slots_.size());
    old.swap(slots_);
    for (const PairRecord& record : old) {
      if (record.used) slot_of(record.pair) = record;
    }
  }

  std::vector<PairRecord> slots_;  // a power of two of them
  std::size_t used_ = 0;
};

}  // namespace bloomery
