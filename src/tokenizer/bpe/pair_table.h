// Which two parts merge, while merging. Lookups of two parts that do not merge are the most
// frequent and would miss the nearest caches: a filter of few bits per pair answers most of them.
#pragma once

#include <cstdint>
#include <vector>

namespace bloomery {

class PairTable {
 public:
  static constexpr int kPartBits = 21;
  static constexpr std::uint32_t kMaxParts = 1u << kPartBits;
  static constexpr std::uint32_t kNone = INT32_MAX;

  struct Pair {
    std::uint32_t left, right, result;  // each below kMaxParts
  };

  PairTable() : PairTable(std::vector<Pair>{}) {}
  explicit PairTable(const std::vector<Pair>& pairs);

  // The part that the two become, or kNone.
  std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    if ((left | right) < 256) return of_bytes_[left << 8 | right];
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    if ((filter_[hash >> filter_shift_] >> (hash >> kFilterBit & 63) & 1) == 0) return kNone;
    for (std::size_t at = hash >> shift_;; at = (at + 1) & mask_) {
      if (slots_[at] >> kPartBits == key) {
        return static_cast<std::uint32_t>(slots_[at]) & (kMaxParts - 1);
      }
      if (slots_[at] == kEmpty) return kNone;
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

  std::vector<std::uint32_t> of_bytes_;  // 256 x 256
  std::vector<std::uint64_t> slots_;     // key, then result; open addressing
  std::vector<std::uint64_t> filter_;    // a bit for each pair, some for several
  std::size_t mask_;
  int shift_, filter_shift_;
};

}  // namespace bloomery
