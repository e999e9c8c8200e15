// UTF-8, one character at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct Utf8Char {
  char32_t code;
  int length;  // in bytes
};

// The character at text[at], which must be valid UTF-8 and not the end.
inline Utf8Char utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  if (first < 0xE0) {
    return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  }
  if (first < 0xF0) {
    return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

inline void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// The end of the ASCII that starts at `at`, or a few bytes before it.
std::size_t skip_ascii(std::string_view text, std::size_t at);

// The length of the longest prefix that is whole, valid characters (no surrogates, no overlong
// forms); text.size() when all of it is.
std::size_t valid_utf8_prefix(std::string_view text);

inline bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

// The text with every maximal invalid part (as Unicode recommends and Python does) replaced by one
// U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace bloomery
