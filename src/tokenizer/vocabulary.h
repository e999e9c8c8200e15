// The tokens of a model: spelling to id and back. All spellings lie one after another, and the
// table by spelling is flat, so that a hundred thousand of them are read in milliseconds.
#pragma once

#include <cstdint>
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
  TokenId id_of(std::string_view piece) const;
  // Nothing for an id that no token has.
  std::optional<std::string_view> piece(TokenId id) const;
  bool has(TokenId id) const { return piece(id).has_value(); }
  // How many spellings; one more than the largest id.
  std::size_t size() const { return entries_.size(); }
  TokenId end_id() const { return static_cast<TokenId>(by_id_.size()); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    std::uint32_t begin, size;  // in bytes_
    TokenId id;
  };
  struct Slot {
    std::uint32_t tag = 0;        // of the hash
    std::uint32_t entry = kNone;  // kNone: free
  };
  void make_room(std::size_t tokens);
  std::string_view text(const Entry& entry) const {
    return {bytes_.data() + entry.begin, entry.size};
  }
  // Where the spelling is, or where it would be put.
  std::size_t slot_of(std::string_view piece, std::uint64_t hash) const;

  std::string bytes_;
  std::vector<Entry> entries_;        // as they were added
  std::vector<std::uint32_t> by_id_;  // entry of each id
  std::vector<Slot> slots_;           // open addressing, a power of two
};

}  // namespace bloomery
