// A set of characters as bits, in pages of 256; empty pages are one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/unicode/code_set.h"
#include "tokenizer/unicode/properties.h"

namespace bloomery {

class CharBits {
 public:
  // Of a set of property_tables.cpp.
  explicit CharBits(const char* name) : CharBits(character_set(name).ranges()) {}
  explicit CharBits(std::span<const CodeRange> ranges) : CharBits() {
    for (const CodeRange& range : ranges) add(range);
  }

  bool contains(char32_t code) const {
    return (bits_[pages_[code >> 8] * 4u + (code >> 6 & 3)] >> (code & 63) & 1) != 0;
  }

 private:
  CharBits() : pages_(0x1100), bits_(4) {}

  void add(CodeRange range) {
    for (char32_t code = range.first; code <= range.last; ++code) {
      std::uint16_t& page = pages_[code >> 8];
      if (page == 0) {
        page = static_cast<std::uint16_t>(bits_.size() / 4);
        bits_.resize(bits_.size() + 4);
      }
      bits_[page * 4u + (code >> 6 & 3)] |= std::uint64_t{1} << (code & 63);
    }
  }

  std::vector<std::uint16_t> pages_;
  std::vector<std::uint64_t> bits_;  // the first page is empty
};

}  // namespace bloomery
