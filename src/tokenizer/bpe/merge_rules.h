// Which two parts of a piece join, in which order, and into what, for models whose parts are not
// told by their text alone (TextJoins is for those). A part is a number that the caller chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/bpe/part_merger.h"

namespace bloomery {

struct MergeRule {
  std::uint32_t left, right, result;  // each below MergeRules::kMaxParts
};

class MergeRules {
 public:
  static constexpr int kPartBits = 21;
  static constexpr int kRuleBits = 22;
  static constexpr std::uint32_t kMaxParts = 1u << kPartBits;
  static constexpr std::uint32_t kMaxRules = (1u << kRuleBits) - 1;

  MergeRules() : MergeRules(std::vector<MergeRule>{}) {}
  // In their order, the first joins first; of rules with the same pair the last one counts. An
  // Error if there are more rules or larger parts than fit.
  explicit MergeRules(const std::vector<MergeRule>& rules);

  // Pairs that do not join are the most frequent and would miss the nearest caches: a filter of few
  // bits per pair answers most of them.
  Join find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    if ((filter_[hash >> filter_shift_] >> (hash >> kFilterBit & 63) & 1) == 0) return {};
    for (std::size_t at = hash >> shift_;; at = (at + 1) & mask_) {
      if (slots_[at] >> kRuleBits == key) {
        const std::uint32_t rule = static_cast<std::uint32_t>(slots_[at]) & ((1u << kRuleBits) - 1);
        return {rule, results_[rule]};
      }
      if (slots_[at] == kEmpty) return {};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr int kFilterBit = 32;  // where the six bits of the hash for a word's bit begin

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << kPartBits | right;
  }
  // The upper bits are the good ones.
  static std::uint64_t hash_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15; }

  std::vector<std::uint64_t> slots_;   // key, then rule; open addressing
  std::vector<std::uint64_t> filter_;  // a bit for each pair, some for several
  std::vector<std::uint32_t> results_;
  std::size_t mask_;
  int shift_, filter_shift_;
};

}  // namespace bloomery
