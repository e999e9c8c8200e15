#include "tokenizer/bpe/merge_rules.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace bloomery {

MergeRules::MergeRules(const std::vector<MergeRule>& rules)
    : slots_(std::bit_ceil(std::max<std::size_t>(rules.size() * 2, 16)), kEmpty),
      filter_(std::max<std::size_t>(slots_.size() / 16, 2)),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())),
      filter_shift_(64 - std::countr_zero(filter_.size())) {
  check(rules.size() <= kMaxRules, "the vocabulary has ", rules.size(), " merges; at most ",
        kMaxRules, " are supported");
  results_.reserve(rules.size());
  for (const auto& [left, right, result] : rules) {
    const std::uint32_t largest = std::max({left, right, result});
    check(largest < kMaxParts, "the vocabulary has an id of about ", largest, "; at most ",
          kMaxParts, " are supported");
    const auto number = static_cast<std::uint32_t>(results_.size());
    results_.push_back(result);
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    filter_[hash >> filter_shift_] |= std::uint64_t{1} << (hash >> kFilterBit & 63);
    std::size_t at = hash >> shift_;
    while (slots_[at] != kEmpty && slots_[at] >> kRuleBits != key) {
      at = (at + 1) & mask_;
    }
    slots_[at] = key << kRuleBits | number;
  }
}

}  // namespace bloomery
