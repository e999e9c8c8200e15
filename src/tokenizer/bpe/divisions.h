// The ways to divide a token into two others, for models that name no merges but join whatever
// together is a token.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace bloomery {

// Looks tokens up by hashes of which those of all beginnings and ends of a text follow from one
// walk over it. The vocabulary must outlive it.
class Divisions {
 public:
  explicit Divisions(const Vocabulary& vocabulary);

  // The text that first() and second() divide; it must stay.
  void take(std::string_view text);
  // The token that the text before, or from, this place is; -1: none.
  TokenId first(std::size_t at) const { return find(text_.substr(0, at), hash(0, at)); }
  TokenId second(std::size_t at) const { return find(text_.substr(at), hash(at, text_.size())); }

 private:
  static constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;
  struct Slot {
    std::uint64_t hash = 0;
    TokenId id = -1;  // -1: free
  };
  static std::size_t slot_bits(std::uint64_t hash) { return (hash * 0xC2B2AE3D27D4EB4F) >> 20; }

  // Of text_[begin...end).
  std::uint64_t hash(std::size_t begin, std::size_t end) const {
    return hashes_[end] - hashes_[begin] * powers_[end - begin];
  }
  TokenId find(std::string_view text, std::uint64_t hash) const;

  const Vocabulary& vocabulary_;
  std::string_view text_;
  std::vector<std::uint64_t> hashes_, powers_;  // of the text before each place; of kBase
  std::vector<Slot> slots_;                     // open addressing, a power of two
  std::vector<std::uint64_t> filter_;           // bits by hash: no token where none is set
};

}  // namespace bloomery
