#include "tokenizer/bpe/divisions.h"

#include <algorithm>
#include <bit>

namespace bloomery {

Divisions::Divisions(const Vocabulary& vocabulary)
    : hashes_(1),
      powers_(1, 1),
      slots_(std::bit_ceil(std::max<std::size_t>(vocabulary.size() * 2, 16))),
      filter_(slots_.size() / 8) {
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    const auto piece = vocabulary.piece(id);
    if (!piece || piece->empty()) continue;
    take(*piece);
    const std::uint64_t whole = hash(0, piece->size());
    const std::size_t bits = slot_bits(whole);
    std::size_t at = bits & (slots_.size() - 1);
    while (slots_[at].id >= 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {whole, id, static_cast<std::uint32_t>(piece->size())};
    filter_[bits / 64 & (filter_.size() - 1)] |= std::uint64_t{1} << bits % 64;
  }
}

void Divisions::take(std::string_view text) {
  size_ = text.size();
  hashes_.resize(text.size() + 1);
  while (powers_.size() <= text.size()) powers_.push_back(powers_.back() * kBase);
  for (std::size_t i = 0; i < text.size(); ++i) {
    hashes_[i + 1] = hashes_[i] * kBase + static_cast<unsigned char>(text[i]) + 1;
  }
}

TokenId Divisions::find(std::uint64_t hash, std::size_t size) const {
  const std::size_t bits = slot_bits(hash);
  if ((filter_[bits / 64 & (filter_.size() - 1)] >> bits % 64 & 1) == 0) return -1;
  for (std::size_t at = bits & (slots_.size() - 1); slots_[at].id >= 0;
       at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && slots_[at].size == size) return slots_[at].id;
  }
  return -1;
}

}  // namespace bloomery
