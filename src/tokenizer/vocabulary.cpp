#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace bloomery {

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  bytes_.reserve(bytes);
  entries_.reserve(tokens);
  by_id_.reserve(tokens);
  make_room(tokens);
}

// A third of the slots stay free, at least.
void Vocabulary::make_room(std::size_t tokens) {
  const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(tokens + tokens / 2 + 1, 16));
  if (wanted <= slots_.size()) return;
  check(wanted <= std::size_t{1} << 31, "the vocabulary has ", tokens, " tokens; too many");
  slots_.assign(wanted, kFree);
  mask_ = static_cast<std::uint32_t>(wanted - 1);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint64_t hash = hash_of(text(entries_[i]));
    slots_[slot_of(text(entries_[i]), hash)] = tag_of(hash) | static_cast<std::uint32_t>(i);
  }
}

void Vocabulary::add(std::string_view piece, TokenId id) {
  check(bytes_.size() + piece.size() < UINT32_MAX, "the vocabulary's spellings are over 4 GB");
  if (entries_.size() + entries_.size() / 2 + 2 > slots_.size()) make_room(entries_.size() * 2);
  const std::uint64_t hash = hash_of(piece);
  std::uint32_t& slot = slots_[slot_of(piece, hash)];
  if (slot == kFree) {
    slot = tag_of(hash) | static_cast<std::uint32_t>(entries_.size());
    entries_.push_back(
        {static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(piece.size()), id});
    bytes_ += piece;
    longest_ = std::max(longest_, piece.size());
  } else {
    Entry& entry = entries_[slot & mask_];
    std::uint32_t& before = by_id_[static_cast<std::size_t>(entry.id)];
    if (before == (slot & mask_)) before = kFree;
    entry.id = id;
  }
  const auto index = static_cast<std::size_t>(id);
  if (index >= by_id_.size()) by_id_.resize(index + 1, kFree);
  has_unique_ids_ &= by_id_[index] == kFree;
  by_id_[index] = slot & mask_;
}

}  // namespace bloomery
