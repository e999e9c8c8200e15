// Which two parts merge, while merging: eight bytes per pair, because the table is larger than the
// nearest caches and every lookup may miss them.
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
    for (std::size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (slots_[at] >> kPartBits == key) {
        return static_cast<std::uint32_t>(slots_[at]) & (kMaxParts - 1);
      }
      if (slots_[at] == kEmpty) return kNone;
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << kPartBits | right;
  }
  std::size_t slot_of(std::uint64_t key) const {
    return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15 >> shift_);
  }

  std::vector<std::uint32_t> of_bytes_;  // 256 x 256
  std::vector<std::uint64_t> slots_;     // key, then result; open addressing
  std::size_t mask_;
  int shift_;
};

}  // namespace bloomery
