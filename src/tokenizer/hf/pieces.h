// A text cut into pieces, as it goes from one pre-tokenizer to the next. One buffer holds the text
// of all pieces, so that cutting costs no memory per piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

struct Piece {
  std::size_t begin, end;
  bool at_start;  // see Stretch
};

struct Pieces {
  std::string_view text;
  std::vector<Piece> list;
  // The text is bytes, and each stands for the character that spells it (byte_alphabet.h): what
  // the ByteLevel pre-tokenizer makes of a text, without writing it out.
  bool byte_level = false;
  std::string buffer;  // what `text` refers to, once a pre-tokenizer has rewritten it

  std::string_view at(const Piece& piece) const {
    return text.substr(piece.begin, piece.end - piece.begin);
  }
  // Calls visit(code, begin, end) for each character of a piece.
  template <class Visit>
  void for_each_character(const Piece& piece, const Visit& visit) const {
    if (byte_level) {
      for (std::size_t i = piece.begin; i < piece.end; ++i) {
        visit(byte_characters()[static_cast<unsigned char>(text[i])], i, i + 1);
      }
      return;
    }
    for (std::size_t i = piece.begin; i < piece.end;) {
      const Utf8Char next = utf8_at(text, i);
      const std::size_t end = i + static_cast<std::size_t>(next.length);
      visit(next.code, i, end);
      i = end;
    }
  }
  // Calls rewrite(text of the piece, buffer) to append each piece's new text to a new buffer.
  template <class Rewrite>
  void rewrite(const Rewrite& rewrite) {
    std::string result;
    result.reserve(text.size() + text.size() / 4 + 16);
    for (Piece& piece : list) {
      const std::size_t begin = result.size();
      rewrite(piece, at(piece), result);
      piece.begin = begin;
      piece.end = result.size();
    }
    buffer = std::move(result);
    text = buffer;
  }
  // Writes the characters of a byte-level text out.
  void spell_out();
};

}  // namespace bloomery::hf
