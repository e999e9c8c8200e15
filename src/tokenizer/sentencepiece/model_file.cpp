#include "tokenizer/sentencepiece/model_file.h"

#include <bit>
#include <bitset>
#include <cmath>

#include "base/error.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/sentencepiece/wire_reader.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace bloomery {
namespace {

// Field numbers of the protocol buffer.
enum ModelField { kPieces = 1, kTrainer = 2, kNormalizer = 3, kSelfTest = 4, kDenormalizer = 5 };
enum PieceField { kText = 1, kScore = 2, kType = 3 };
enum TrainerField {
  kModelType = 3,
  kWhitespaceSuffix = 24,
  kByteFallback = 35,
  kUnknownSurface = 44,
  kUnknownPiece = 45,
  kBosPiece = 46,
  kEosPiece = 47,
  kPadPiece = 48
};
enum NormalizerField { kCharsmap = 2, kDummyPrefix = 3, kExtraWhitespaces = 4, kEscape = 5 };
constexpr int kFirstExtension = 200;  // fields that others may add
// In bytes. Trainers stop at some dozens; the limit bounds the time to find how pieces are formed,
// which grows with the square of the length.
constexpr std::size_t kLongestPiece = 1024;

SentencePieceEntry read_piece(WireReader reader, std::size_t id, std::string_view name) {
  SentencePieceEntry piece;
  while (reader.next()) {
    if (reader.is(kText, WireType::bytes)) {
      piece.text = reader.bytes();
    } else if (reader.is(kScore, WireType::fixed32)) {
      piece.score = std::bit_cast<float>(reader.fixed32());
    } else if (reader.is(kType, WireType::varint)) {
      const std::uint64_t type = reader.varint();
      check(type >= 1 && type <= 6, name, ": piece ", id, " has the type ", type,
            "; this version knows 1 to 6");
      piece.type = static_cast<PieceType>(type);
    } else {
      reader.skip();
    }
  }
  return piece;
}

void read_trainer(WireReader reader, SentencePieceFile& file, std::string_view name) {
  while (reader.next()) {
    if (reader.is(kModelType, WireType::varint)) {
      const std::uint64_t type = reader.varint();
      check(type >= 1 && type <= 4, name, ": model type ", type,
            " is none of unigram (1), bpe (2), word (3) and char (4)");
      file.algorithm = static_cast<SentencePieceAlgorithm>(type);
    } else if (reader.is(kWhitespaceSuffix, WireType::varint)) {
      file.whitespace_is_suffix = reader.varint() != 0;
    } else if (reader.is(kByteFallback, WireType::varint)) {
      file.byte_fallback = reader.varint() != 0;
    } else if (reader.is(kUnknownSurface, WireType::bytes)) {
      file.unknown_surface = reader.bytes();
    } else if (reader.is(kUnknownPiece, WireType::bytes)) {
      file.unknown_piece = reader.bytes();
    } else if (reader.is(kBosPiece, WireType::bytes)) {
      file.bos_piece = reader.bytes();
    } else if (reader.is(kEosPiece, WireType::bytes)) {
      file.eos_piece = reader.bytes();
    } else if (reader.is(kPadPiece, WireType::bytes)) {
      file.pad_piece = reader.bytes();
    } else {
      reader.skip();
    }
  }
}

void read_normalization(WireReader reader, SentencePieceNormalization& normalization) {
  while (reader.next()) {
    if (reader.is(kCharsmap, WireType::bytes)) {
      normalization.charsmap = reader.bytes();
    } else if (reader.is(kDummyPrefix, WireType::varint)) {
      normalization.add_dummy_prefix = reader.varint() != 0;
    } else if (reader.is(kExtraWhitespaces, WireType::varint)) {
      normalization.remove_extra_whitespaces = reader.varint() != 0;
    } else if (reader.is(kEscape, WireType::varint)) {
      normalization.escape_whitespaces = reader.varint() != 0;
    } else {
      reader.skip();
    }
  }
}

class PieceChecker {
 public:
  PieceChecker(const SentencePieceFile& file, std::string_view name) : file_(file), name_(name) {}

  void check_all() {
    check(!file_.pieces.empty(), name_, ": the model has no pieces");
    for (std::size_t id = 0; id < file_.pieces.size(); ++id) check_one(id);
    check(unknowns_ == 1, name_, ": the model has ", unknowns_,
          " unknown pieces; exactly one is needed");
    check(!file_.byte_fallback || bytes_.all(), name_, ": byte fallback needs 256 byte pieces; ",
          bytes_.count(), " are there");
    for (const std::string* text : {&file_.unknown_surface, &file_.unknown_piece, &file_.bos_piece,
                                    &file_.eos_piece, &file_.pad_piece}) {
      check(is_utf8(*text), name_, ": the name of a special piece is not valid UTF-8");
    }
  }

 private:
  void check_one(std::size_t id) {
    const auto& [text, score, type] = file_.pieces[id];
    check(!text.empty() && is_utf8(text), name_, ": piece ", id,
          text.empty() ? " is empty" : " is not valid UTF-8");
    check(text.size() <= kLongestPiece, name_, ": piece ", id, " has ", text.size(),
          " bytes; the limit is ", kLongestPiece);
    check(std::isfinite(score), name_, ": piece ", id, " (\"", text, "\") has the score ", score,
          "; scores must be finite");
    Vocabulary& known = is_text(type) ? text_ : reserved_;
    known.add(text, static_cast<TokenId>(id));
    num_known_ += 1;
    check(text_.size() + reserved_.size() == num_known_, name_, ": piece ", id, " (\"", text,
          "\") is there twice");
    unknowns_ += type == PieceType::unknown;
    if (type != PieceType::byte) return;
    const auto byte = byte_of_piece(text);
    check(file_.byte_fallback && byte.has_value(), name_, ": byte piece ", id, " (\"", text,
          byte ? "\") in a model without byte fallback" : "\") must look like <0x0A>");
    bytes_.set(*byte);
  }

  const SentencePieceFile& file_;
  std::string_view name_;
  Vocabulary text_, reserved_;
  std::size_t num_known_ = 0;
  std::bitset<256> bytes_;
  int unknowns_ = 0;
};

void use_default_names(SentencePieceFile& file) {
  const SentencePieceFile defaults;
  if (file.unknown_piece.empty()) file.unknown_piece = defaults.unknown_piece;
  if (file.bos_piece.empty()) file.bos_piece = defaults.bos_piece;
  if (file.eos_piece.empty()) file.eos_piece = defaults.eos_piece;
  if (file.pad_piece.empty()) file.pad_piece = defaults.pad_piece;
}

}  // namespace

SentencePieceFile parse_sentencepiece(std::string_view bytes, std::string_view name) {
  SentencePieceFile file;
  WireReader reader(bytes, name);
  while (reader.next()) {
    if (reader.is(kPieces, WireType::bytes)) {
      file.pieces.push_back(read_piece(reader.message(), file.pieces.size(), name));
    } else if (reader.is(kTrainer, WireType::bytes)) {
      read_trainer(reader.message(), file, name);
    } else if (reader.is(kNormalizer, WireType::bytes)) {
      read_normalization(reader.message(), file.normalization);
    } else if (reader.is(kDenormalizer, WireType::bytes)) {
      read_normalization(reader.message(), file.denormalization);
    } else {
      reader.skip();
    }
  }
  use_default_names(file);
  PieceChecker(file, name).check_all();
  return file;
}

bool looks_like_sentencepiece(std::string_view bytes) {
  try {
    WireReader reader(bytes, "");
    bool has_piece = false;
    while (reader.next()) {
      const int field = reader.field();
      if (field > kDenormalizer && field < kFirstExtension) return false;
      if (field <= kDenormalizer && !reader.is(field, WireType::bytes)) return false;
      has_piece |= field == kPieces;
      reader.skip();
    }
    return has_piece;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace bloomery
