#include "tokenizer/bpe/pair_table.h"

#include <algorithm>
#include <bit>

namespace bloomery {

PairTable::PairTable(const std::vector<Pair>& pairs)
    : of_bytes_(std::size_t{256} * 256, kNone),
      slots_(std::bit_ceil(std::max<std::size_t>(pairs.size() * 2, 16)), kEmpty),
      filter_(std::max<std::size_t>(slots_.size() / 16, 2)),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())),
      filter_shift_(64 - std::countr_zero(filter_.size())) {
  for (const Pair& pair : pairs) {
    if ((pair.left | pair.right) < 256) {
      of_bytes_[pair.left << 8 | pair.right] = pair.result;
      continue;
    }
    const std::uint64_t key = key_of(pair.left, pair.right);
    const std::uint64_t hash = hash_of(key);
    filter_[hash >> filter_shift_] |= std::uint64_t{1} << (hash >> kFilterBit & 63);
    std::size_t at = hash >> shift_;
    while (slots_[at] != kEmpty) {
      at = (at + 1) & mask_;
    }
    slots_[at] = key << kPartBits | pair.result;
  }
}

}  // namespace bloomery
