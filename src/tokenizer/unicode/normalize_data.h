// The tables of normalize.h in the form that is looked up, made on first use.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/unicode/normalize.h"

namespace bloomery {

// Bit of a form in CharacterData::unstable.
inline std::uint8_t unstable_in(NormalForm form) {
  return static_cast<std::uint8_t>(1 << static_cast<int>(form));
}

struct CharacterData {
  std::uint16_t canonical = 0, compatible = 0;  // positions in the pool; 0: itself
  std::uint8_t combining = 0;
  // In which forms the character may change, or join or trade places with one before it.
  std::uint8_t unstable = 0;
};

class NormalizeData {
 public:
  static const NormalizeData& get();

  const CharacterData& of(char32_t code) const {
    return characters_[static_cast<std::size_t>(pages_[code >> 8]) << 8 | (code & 0xFF)];
  }
  void decompose(char32_t code, bool compatible, std::u32string& result) const;
  char32_t compose(char32_t first, char32_t second) const;  // 0: they do not join

 private:
  NormalizeData();
  CharacterData& at(char32_t code);
  std::uint16_t store(const std::vector<char32_t>& parts);

  std::vector<std::uint16_t> pages_;
  std::vector<CharacterData> characters_;
  std::u32string pool_;  // each decomposition: its length, then its characters
  std::unordered_map<std::uint64_t, char32_t> compositions_;
};

}  // namespace bloomery
