// A set of characters as bits, in pages of 256; empty pages are one.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/unicode/run_text.h"

namespace bloomery::hf {

class CharBits {
 public:
  // `runs` is one of char_class_tables.h.
  explicit CharBits(const char* runs) : pages_(0x1100), bits_(4) {
    read_runs(runs, [&](char32_t first, char32_t last, int is_in_set) {
      for (char32_t code = first; is_in_set != 0 && code <= last; ++code) add(code);
    });
  }

  bool contains(char32_t code) const {
    return (bits_[pages_[code >> 8] * 4u + (code >> 6 & 3)] >> (code & 63) & 1) != 0;
  }

 private:
  void add(char32_t code) {
    std::uint16_t& page = pages_[code >> 8];
    if (page == 0) {
      page = static_cast<std::uint16_t>(bits_.size() / 4);
      bits_.resize(bits_.size() + 4);
    }
    bits_[page * 4u + (code >> 6 & 3)] |= std::uint64_t{1} << (code & 63);
  }

  std::vector<std::uint16_t> pages_;
  std::vector<std::uint64_t> bits_;  // the first page is empty
};

}  // namespace bloomery::hf
