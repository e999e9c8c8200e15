#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace bloomery {

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  bytes_.reserve(bytes);
  entries_.reserve(tokens);
  by_id_.reserve(tokens);
  make_room(tokens);
}

void Vocabulary::make_room(std::size_t tokens) {
  const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(tokens * 2, 16));
  if (wanted <= slots_.size()) return;
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(wanted));
  for (const Slot& slot : old) {
    if (slot.entry == kNone) continue;
    const std::string_view piece = text(entries_[slot.entry]);
    slots_[slot_of(piece, xxh3(piece))] = slot;
  }
}

std::size_t Vocabulary::slot_of(std::string_view piece, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  std::size_t at = hash & mask;
  while (slots_[at].entry != kNone &&
         (slots_[at].tag != tag || text(entries_[slots_[at].entry]) != piece)) {
    at = (at + 1) & mask;
  }
  return at;
}

void Vocabulary::add(std::string_view piece, TokenId id) {
  check(bytes_.size() + piece.size() < UINT32_MAX, "the vocabulary's spellings are over 4 GB");
  if (entries_.size() * 2 >= slots_.size()) make_room(entries_.size() * 2);
  const std::uint64_t hash = xxh3(piece);
  Slot& slot = slots_[slot_of(piece, hash)];
  if (slot.entry == kNone) {
    slot = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(entries_.size())};
    entries_.push_back(
        {static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(piece.size()), id});
    bytes_ += piece;
  } else {
    std::uint32_t& before = by_id_[static_cast<std::size_t>(entries_[slot.entry].id)];
    if (before == slot.entry) before = kNone;
    entries_[slot.entry].id = id;
  }
  const auto index = static_cast<std::size_t>(id);
  if (index >= by_id_.size()) by_id_.resize(index + 1, kNone);
  by_id_[index] = slot.entry;
}

TokenId Vocabulary::id_of(std::string_view piece) const {
  const std::uint32_t entry = slots_[slot_of(piece, xxh3(piece))].entry;
  return entry == kNone ? -1 : entries_[entry].id;
}

std::optional<std::string_view> Vocabulary::piece(TokenId id) const {
  const auto index = static_cast<std::size_t>(id);
  if (id < 0 || index >= by_id_.size() || by_id_[index] == kNone) return std::nullopt;
  return text(entries_[by_id_[index]]);
}

}  // namespace bloomery
