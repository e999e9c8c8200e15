// What words became last time, for one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// A hash table of short words that forgets everything when it is full: bounded memory, and words
// that are frequent come back at once.
class PieceCache {
 public:
  static constexpr std::size_t kLongestWord = 64;  // bytes; longer ones are not worth keeping

  PieceCache() { clear(); }

  static std::uint64_t hash(std::string_view word);

  // Appends the ids of the word; false if it is not here.
  bool append(std::string_view word, std::uint64_t hash, std::vector<TokenId>& ids) const {
    for (std::size_t at = hash & kMask; entries_[at].size != 0; at = (at + 1) & kMask) {
      const Entry& entry = entries_[at];
      if (entry.hash == static_cast<std::uint32_t>(hash >> 32) && entry.size == word.size() &&
          std::memcmp(keys_.data() + entry.key, word.data(), word.size()) == 0) {
        ids.insert(ids.end(), ids_.begin() + entry.ids, ids_.begin() + entry.ids + entry.count);
        return true;
      }
    }
    return false;
  }

  // `word` must not be here yet, nor be empty or longer than kLongestWord.
  void add(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids);

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 16, kMask = kSlots - 1;
  static constexpr std::size_t kMostWords = kSlots / 2;

  struct Entry {
    std::uint32_t hash = 0, key = 0, ids = 0;
    std::uint16_t size = 0;  // 0: free
    std::uint16_t count = 0;
  };

  void clear();

  std::vector<Entry> entries_;
  std::vector<char> keys_;
  std::vector<TokenId> ids_;
  std::size_t words_ = 0;
};

}  // namespace bloomery
