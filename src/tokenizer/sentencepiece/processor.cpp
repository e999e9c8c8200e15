#include "tokenizer/sentencepiece/processor.h"

#include <algorithm>

#include "tokenizer/byte_piece.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Writes the text of ids one after another.
class PieceWriter {
 public:
  PieceWriter(const SentencePieceFile& file, const PieceTable& pieces)
      : file_(file), pieces_(pieces) {}

  void add(TokenId given) {
    const TokenId id = pieces_.id_of(pieces_[given].text);
    const SentencePieceEntry& piece = pieces_[id];
    if (piece.type == PieceType::byte) {
      bytes_.push_back(static_cast<char>(*byte_of_piece(piece.text)));
      return;
    }
    flush_bytes();
    if (skipped_space_ || has_text_) at_start_ = false;
    skipped_space_ = false;
    if (piece.type == PieceType::control) {
      text_ += piece.text;
    } else if (piece.type == PieceType::unknown) {
      add_text(file_.unknown_surface);
    } else {
      add_piece(piece.text);
    }
  }

  std::string finish() {
    flush_bytes();
    return std::move(text_);
  }

 private:
  void add_text(std::string_view text) {
    text_ += text;
    has_text_ |= !text.empty();
  }

  // The first space was added by encoding; where extra spaces were removed, all that come first.
  void add_piece(std::string_view piece) {
    const SentencePieceNormalization& rules = file_.normalization;
    if (at_start_ && (rules.add_dummy_prefix || rules.remove_extra_whitespaces) &&
        piece.starts_with(kWordMark)) {
      piece.remove_prefix(kWordMark.size());
      skipped_space_ = !rules.remove_extra_whitespaces;
    }
    for (std::size_t space; (space = piece.find(kWordMark)) != std::string_view::npos;) {
      add_text(piece.substr(0, space));
      add_text(" ");
      piece.remove_prefix(space + kWordMark.size());
    }
    add_text(piece);
  }

  // Each byte that is no part of a character becomes one U+FFFD.
  void flush_bytes() {
    std::string_view left = bytes_;
    while (!left.empty()) {
      const std::size_t valid = valid_utf8_prefix(left);
      add_text(left.substr(0, valid));
      left.remove_prefix(valid);
      if (left.empty()) break;
      append_utf8(text_, kReplacementCharacter);
      has_text_ = true;
      left.remove_prefix(1);
    }
    bytes_.clear();
  }

  const SentencePieceFile& file_;
  const PieceTable& pieces_;
  std::string text_, bytes_;
  bool at_start_ = true;  // a space here is the one that encoding has added
  bool skipped_space_ = false;
  bool has_text_ = false;  // other than control pieces
};

}  // namespace

SentencePieceProcessor::SentencePieceProcessor(SentencePieceFile file, std::string_view name)
    : file_(std::move(file)),
      pieces_(file_.pieces),
      normalizer_(file_.normalization, file_.whitespace_is_suffix, pieces_.user_defined(),
                  takes_spaces(file_, pieces_), name),
      segmenter_(make_segmenter(file_, pieces_)) {
  if (!file_.denormalization.charsmap.empty()) {
    denormalizer_.emplace(file_.denormalization, false, ByteTrie(), false, name);
  }
}

void SentencePieceProcessor::Session::encode(std::string_view text, std::vector<TokenId>& ids,
                                             bool at_start) {
  processor_.normalizer_.normalize(text, normalized_, at_start);
  const std::size_t before = ids.size();
  segmenter_->segment(normalized_, ids);
  if (processor_.file_.byte_fallback) return;
  // A run of unknown text is one unknown piece.
  const TokenId unknown = processor_.pieces_.unknown();
  const auto both_unknown = [&](TokenId a, TokenId b) { return a == unknown && b == unknown; };
  ids.erase(std::unique(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), both_unknown),
            ids.end());
}

std::string SentencePieceProcessor::decode(std::span<const TokenId> ids) const {
  PieceWriter writer(file_, pieces_);
  for (const TokenId id : ids) writer.add(id);
  std::string text = writer.finish();
  if (!denormalizer_) return text;
  std::string denormalized;
  denormalizer_->normalize(text, denormalized);
  return denormalized;
}

std::optional<TokenId> SentencePieceProcessor::control(std::string_view name) const {
  const auto id = pieces_.find(name);
  return id && pieces_[*id].type == PieceType::control ? id : std::nullopt;
}

}  // namespace bloomery
