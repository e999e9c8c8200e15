// Which two parts of a piece join, in which order, and into what: the one table of every kind of
// byte-pair encoding. A part is a number that the caller chooses: of a byte, a character, a token.
#pragma once

#include <cstdint>
#include <vector>

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
  static constexpr std::uint32_t kNone = UINT32_MAX;

  MergeRules() : MergeRules(std::vector<MergeRule>{}) {}
  // In their order, the first joins first; of rules with the same pair the last one counts. Where
  // `ranks` are given, rules of equal rank come at once (the leftmost in the text); they must not
  // fall. An Error if there are more rules or larger parts than fit.
  explicit MergeRules(const std::vector<MergeRule>& rules, std::vector<std::uint32_t> ranks = {});

  // The number of the rule that joins the two, or kNone. Pairs that do not join are the most
  // frequent and would miss the nearest caches: a filter of few bits per pair answers most of them.
  std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    if ((left | right) < 256) return of_small_[left << 8 | right];
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    if ((filter_[hash >> filter_shift_] >> (hash >> kFilterBit & 63) & 1) == 0) return kNone;
    for (std::size_t at = hash >> shift_;; at = (at + 1) & mask_) {
      if (slots_[at] >> kRuleBits == key) {
        return static_cast<std::uint32_t>(slots_[at]) & ((1u << kRuleBits) - 1);
      }
      if (slots_[at] == kEmpty) return kNone;
    }
  }
  std::uint32_t result(std::uint32_t rule) const { return results_[rule]; }
  std::uint32_t rank(std::uint32_t rule) const { return ranks_.empty() ? rule : ranks_[rule]; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr int kFilterBit = 32;  // where the six bits of the hash for a word's bit begin

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << kPartBits | right;
  }
  // The upper bits are the good ones.
  static std::uint64_t hash_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15; }

  std::vector<std::uint32_t> of_small_;  // 256 x 256
  std::vector<std::uint64_t> slots_;     // key, then rule; open addressing
  std::vector<std::uint64_t> filter_;    // a bit for each pair, some for several
  std::vector<std::uint32_t> results_, ranks_;
  std::size_t mask_;
  int shift_, filter_shift_;
};

}  // namespace bloomery
