// The pieces <0x00> ... <0xFF> that stand for single bytes in vocabularies with byte fallback.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/word_mark.h"

namespace bloomery {

inline std::string byte_piece(int byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<',
          '0',
          'x',
          kDigits[static_cast<std::size_t>(byte >> 4 & 15)],
          kDigits[static_cast<std::size_t>(byte & 15)],
          '>'};
}

// The byte that the piece stands for; capital digits only.
inline std::optional<unsigned char> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return std::nullopt;
  int byte = 0;
  for (const char digit : piece.substr(3, 2)) {
    if (digit >= '0' && digit <= '9') {
      byte = byte * 16 + (digit - '0');
    } else if (digit >= 'A' && digit <= 'F') {
      byte = byte * 16 + (digit - 'A' + 10);
    } else {
      return std::nullopt;
    }
  }
  return static_cast<unsigned char>(byte);
}

// What a piece of such a vocabulary stands for inside of a text: its byte, or itself with spaces
// for the marks of words.
inline std::string surface_of_piece(std::string_view piece) {
  if (const auto byte = byte_of_piece(piece)) return {static_cast<char>(*byte)};
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const bool mark = has_word_mark(piece, at);
    text += mark ? ' ' : piece[at];
    at += mark ? kWordMark.size() : 1;
  }
  return text;
}

}  // namespace bloomery
