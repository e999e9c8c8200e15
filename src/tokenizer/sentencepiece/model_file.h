// A SentencePiece .model file: pieces with scores, how the text is normalised, how it is cut.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

enum class PieceType {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

enum class SentencePieceAlgorithm { unigram = 1, bpe = 2, word = 3, character = 4 };

// Normal, user-defined and unused pieces are found in text; the others have names of their own.
inline bool is_text(PieceType type) {
  return type == PieceType::normal || type == PieceType::user_defined || type == PieceType::unused;
}

struct SentencePieceEntry {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

struct SentencePieceNormalization {
  std::string charsmap;  // rules of replacement, see charsmap.h; empty: none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;  // a space becomes U+2581
};

struct SentencePieceFile {
  std::vector<SentencePieceEntry> pieces;  // by id
  SentencePieceAlgorithm algorithm = SentencePieceAlgorithm::unigram;
  bool byte_fallback = false;
  bool whitespace_is_suffix = false;
  std::string unknown_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
  std::string unknown_surface = " \u2047 ";
  SentencePieceNormalization normalization;
  SentencePieceNormalization denormalization;
};

// Parses and checks the contents of a model: sizes against the bytes that are there, every piece
// valid, not empty and unlike the others, one unknown piece, byte pieces all or none. `name` is for
// messages.
SentencePieceFile parse_sentencepiece(std::string_view bytes, std::string_view name);

// Whether the bytes are laid out as such a file, from first to last; says nothing of the values.
bool looks_like_sentencepiece(std::string_view bytes);

}  // namespace bloomery
