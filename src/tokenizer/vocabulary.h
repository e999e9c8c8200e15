// The tokens of a model: spelling to id and back. All spellings lie one after another, and the
// table by spelling is flat and small, so that a hundred thousand of them are read in milliseconds.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

class Vocabulary {
 public:
  Vocabulary() { make_room(0); }

  void reserve(std::size_t tokens, std::size_t bytes);
  // Any bytes. Of a spelling given twice the later id counts, as in a JSON object with a repeated
  // key, and of an id given twice the later spelling is shown.
  void add(std::string_view piece, TokenId id);

  std::optional<TokenId> find(std::string_view piece) const {
    const TokenId id = id_of(piece);
    return id < 0 ? std::nullopt : std::optional(id);
  }
  // -1 for a spelling that no token has.
  TokenId id_of(std::string_view piece) const {
    const std::uint32_t slot = slots_[slot_of(piece, hash_of(piece))];
    return slot == kFree ? -1 : entries_[slot & mask_].id;
  }
  // False for a spelling that surely no token has; cheaper than looking.
  bool may_have(std::string_view piece) const {
    const std::uint64_t hash = hash_of(piece);
    std::size_t at = hash & mask_;
    while (slots_[at] != kFree && (slots_[at] & ~mask_) != tag_of(hash)) at = (at + 1) & mask_;
    return slots_[at] != kFree;
  }
  // Nothing for an id that no token has.
  std::optional<std::string_view> piece(TokenId id) const {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= by_id_.size() || by_id_[index] == kFree) return std::nullopt;
    return text(entries_[by_id_[index]]);
  }
  bool has(TokenId id) const { return piece(id).has_value(); }
  // How many spellings; one more than the largest id; bytes of the longest spelling.
  std::size_t size() const { return entries_.size(); }
  TokenId end_id() const { return static_cast<TokenId>(by_id_.size()); }
  std::size_t longest() const { return longest_; }
  bool has_unique_ids() const { return has_unique_ids_; }  // none was ever given to two spellings

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  struct Entry {
    std::uint32_t begin, size;  // in bytes_
    TokenId id;
  };

  static std::uint64_t mixed(std::uint64_t value) {
    const auto product = static_cast<unsigned __int128>(value) * 0x9E3779B97F4A7C15;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  template <class Word>
  static std::uint64_t word_at(const char* bytes) {
    Word word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  // Inline and of few steps, because spellings are short.
  static std::uint64_t hash_of(std::string_view piece) {
    const char* const bytes = piece.data();
    const std::size_t size = piece.size();
    std::uint64_t hash = (size + 1) * 0xC2B2AE3D27D4EB4F;
    if (size >= 8) {
      for (std::size_t i = 0; i + 8 < size; i += 8) {
        hash = mixed(hash ^ word_at<std::uint64_t>(bytes + i));
      }
      return mixed(hash ^ word_at<std::uint64_t>(bytes + size - 8));
    }
    if (size >= 4) {
      return mixed(
          hash ^ (word_at<std::uint32_t>(bytes) << 32 | word_at<std::uint32_t>(bytes + size - 4)));
    }
    if (size == 0) return hash;
    return mixed(hash ^ (word_at<std::uint8_t>(bytes) << 16 |
                         word_at<std::uint8_t>(bytes + size / 2) << 8 |
                         word_at<std::uint8_t>(bytes + size - 1)));
  }

  void make_room(std::size_t tokens);
  std::string_view text(const Entry& entry) const {
    return {bytes_.data() + entry.begin, entry.size};
  }
  // What a slot holds beside the number of the entry: bits of the hash.
  std::uint32_t tag_of(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash >> 32) & ~mask_;
  }
  // Where the spelling is, or where it would be put.
  std::size_t slot_of(std::string_view piece, std::uint64_t hash) const {
    const std::uint32_t tag = tag_of(hash);
    std::size_t at = hash & mask_;
    for (; slots_[at] != kFree; at = (at + 1) & mask_) {
      if ((slots_[at] & ~mask_) == tag && text(entries_[slots_[at] & mask_]) == piece) break;
    }
    return at;
  }

  std::string bytes_;
  std::vector<Entry> entries_;        // as they were added
  std::vector<std::uint32_t> by_id_;  // entry of each id
  // Open addressing, a power of two. The lower bits are the number of an entry, always less than
  // the number of slots, those above them the tag.
  std::vector<std::uint32_t> slots_;
  std::uint32_t mask_ = 0;
  std::size_t longest_ = 0;
  bool has_unique_ids_ = true;
};

}  // namespace bloomery
