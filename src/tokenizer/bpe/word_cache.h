// Words that were encoded before, with their ids. Fixed in size: frequent words stay in the nearest
// caches, and one that is fetched from further away still costs a tenth of encoding it anew. Words
// and ids are inside the entries, so that a hit touches one line of memory.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// A word of at most kMaxLength bytes in two machine words: its bytes, zeros, and last its length
// with a mark for what kind of word it is.
struct WordKey {
  static constexpr std::size_t kMaxLength = 15;

  std::uint64_t low, high;

  friend bool operator==(const WordKey&, const WordKey&) = default;

  // `readable` bytes may be read at `bytes`, at least `length`.
  static WordKey of(const char* bytes, std::size_t length, std::size_t readable, bool marked) {
    static_assert(std::endian::native == std::endian::little);
    WordKey key{0, 0};
    if (readable >= 16) [[likely]] {
      std::memcpy(&key, bytes, 16);
      // Shifts by 8 x (0..7) each, without a shift by the whole width.
      const std::uint64_t low_mask =
          length >= 8 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << 8 * length);
      const std::uint64_t high_mask = length <= 8 ? 0 : ~(~std::uint64_t{0} << 8 * (length - 8));
      key.low &= low_mask;
      key.high &= high_mask;
    } else {
      std::memcpy(&key, bytes, length);
    }
    key.high |= static_cast<std::uint64_t>(length | (marked ? 0x80 : 0)) << 56;
    return key;
  }
};

class WordCache {
 public:
  static constexpr std::size_t kMaxIds = 4;
  static constexpr int kIdBits = 28;  // ids above that are not cached

  WordCache() : sets_(kSets) {}

  // Fetches what find() will look at, for words that are looked up a little later.
  void prefetch(const WordKey& key) const { __builtin_prefetch(&sets_[slot_of(key)]); }

  // Writes the word's ids to `out`, where kMaxIds must fit, and returns how many they are; 0 when
  // the word is not here.
  std::size_t find(const WordKey& key, TokenId* out) const {
    const Set& set = sets_[slot_of(key)];
    for (int way = 0; way < 2; ++way) {
      if (set.keys[way] == key) {
        std::memcpy(out, set.ids[way], sizeof set.ids[way]);
        const auto first = static_cast<std::uint32_t>(out[0]);
        out[0] = static_cast<TokenId>(first & kIdMask);
        return first >> kIdBits;
      }
    }
    return 0;
  }

  // Appends the word's ids; false when the word is not here.
  bool append(const WordKey& key, std::vector<TokenId>& ids) const {
    const std::size_t size = ids.size();
    ids.resize(size + kMaxIds);
    const std::size_t count = find(key, ids.data() + size);
    ids.resize(size + count);
    return count > 0;
  }

  // Forgets the older of two words if need be. Words of no or too many ids are not kept.
  void insert(const WordKey& key, std::span<const TokenId> ids) {
    if (ids.empty() || ids.size() > kMaxIds) return;
    if (static_cast<std::uint32_t>(ids[0]) > kIdMask) return;
    Set& set = sets_[slot_of(key)];
    set.keys[1] = set.keys[0];
    std::memcpy(set.ids[1], set.ids[0], sizeof set.ids[0]);
    set.keys[0] = key;
    std::memcpy(set.ids[0], ids.data(), ids.size_bytes());
    set.ids[0][0] |= static_cast<TokenId>(ids.size() << kIdBits);
  }

 private:
  static constexpr std::size_t kSets = 32768;  // 2 MiB
  static constexpr std::uint32_t kIdMask = (1u << kIdBits) - 1;

  // Two words in one line. No word has the key of zeros, since none is empty.
  struct alignas(64) Set {
    WordKey keys[2] = {};
    TokenId ids[2][kMaxIds] = {};  // the number of ids is above the bits of the first
  };

  static std::size_t slot_of(const WordKey& key) {
    const std::uint64_t mixed =
        (key.low * 0x9E3779B97F4A7C15) ^ std::rotl(key.high * 0xC2B2AE3D27D4EB4F, 29);
    return static_cast<std::size_t>(mixed * 0x165667B19E3779F9 >> (64 - std::countr_zero(kSets)));
  }

  std::vector<Set> sets_;
};

}  // namespace bloomery
