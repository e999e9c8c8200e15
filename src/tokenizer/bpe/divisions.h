// The ways to divide a token into two others, for models that name no merges but join whatever
// together is a token.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace bloomery {

// Looks tokens up by hashes, of which those of all beginnings and ends of a text follow from one
// walk over it. 64 bits and the length tell tokens apart: looking at their bytes as well would take
// most of the time.
class Divisions {
 public:
  explicit Divisions(const Vocabulary& vocabulary);

  // The text that first() and second() divide.
  void take(std::string_view text);
  // The token that the text before, or from, this place is; -1: none.
  TokenId first(std::size_t at) const { return find(hash(0, at), at); }
  TokenId second(std::size_t at) const { return find(hash(at, size_), size_ - at); }

 private:
  static constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;
  struct Slot {
    std::uint64_t hash = 0;
    TokenId id = -1;  // -1: free
    std::uint32_t size = 0;
  };
  static std::size_t slot_bits(std::uint64_t hash) { return (hash * 0xC2B2AE3D27D4EB4F) >> 20; }

  // Of the text from `begin` to `end`.
  std::uint64_t hash(std::size_t begin, std::size_t end) const {
    return hashes_[end] - hashes_[begin] * powers_[end - begin];
  }
  TokenId find(std::uint64_t hash, std::size_t size) const;

  std::size_t size_ = 0;                        // of the text
  std::vector<std::uint64_t> hashes_, powers_;  // of the text before each place; of kBase
  std::vector<Slot> slots_;                     // open addressing, a power of two
  std::vector<std::uint64_t> filter_;           // bits by hash: no token where none is set
};

}  // namespace bloomery
