#include "tokenizer/bpe/pair_table.h"

#include <algorithm>
#include <bit>

namespace bloomery {

PairTable::PairTable(const std::vector<Pair>& pairs)
    : of_bytes_(std::size_t{256} * 256, kNone),
      slots_(std::bit_ceil(std::max<std::size_t>(pairs.size() * 2, 16)), kEmpty),
      mask_(slots_.size() - 1),
      shift_(64 - std::countr_zero(slots_.size())) {
  for (const Pair& pair : pairs) {
    if ((pair.left | pair.right) < 256) {
      of_bytes_[pair.left << 8 | pair.right] = pair.result;
      continue;
    }
    const std::uint64_t key = key_of(pair.left, pair.right);
    std::size_t at = slot_of(key);
    while (slots_[at] != kEmpty) {
      at = (at + 1) & mask_;
    }
    slots_[at] = key << kPartBits | pair.result;
  }
}

}  // namespace bloomery
