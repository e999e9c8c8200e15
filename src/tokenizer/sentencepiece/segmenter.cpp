#include "tokenizer/sentencepiece/segmenter.h"

#include <algorithm>

#include "tokenizer/sentencepiece/normalizer.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Models without merging or search: each part of the text is looked up as it is.
class LookupSegmenter : public Segmenter {
 public:
  using NextPart = std::size_t (*)(const ByteTrie& user_defined, std::string_view, std::size_t at);

  LookupSegmenter(const SentencePieceFile& file, const PieceTable& pieces, NextPart next_part)
      : writer_(file, pieces),
        pieces_(pieces),
        user_defined_(pieces.user_defined()),
        next_part_(next_part) {}

  std::unique_ptr<SegmenterSession> make_session() const override {
    return std::make_unique<Session>(*this);
  }

 private:
  class Session : public SegmenterSession {
   public:
    explicit Session(const LookupSegmenter& segmenter) : segmenter_(segmenter) {}
    void segment(std::string_view text, std::vector<TokenId>& ids) override {
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = segmenter_.next_part_(segmenter_.user_defined_, text, at);
        const std::string_view part = text.substr(at, end - at);
        segmenter_.writer_.write(part, segmenter_.pieces_.id_of(part), ids);
        at = end;
      }
    }

   private:
    const LookupSegmenter& segmenter_;
  };

  SegmentWriter writer_;
  const PieceTable& pieces_;
  ByteTrie user_defined_;
  NextPart next_part_;
};

std::size_t word_end(const ByteTrie& /*user_defined*/, std::string_view text, std::size_t at) {
  return std::min(text.find(kWordMark, at + 1), text.size());
}

std::size_t character_end(const ByteTrie& user_defined, std::string_view text, std::size_t at) {
  const std::size_t symbol = user_defined.longest(text, at).length;
  return at + (symbol > 0 ? symbol : static_cast<std::size_t>(utf8_at(text, at).length));
}

}  // namespace

std::unique_ptr<Segmenter> make_word_segmenter(const SentencePieceFile& file,
                                               const PieceTable& pieces) {
  return std::make_unique<LookupSegmenter>(file, pieces, word_end);
}

std::unique_ptr<Segmenter> make_character_segmenter(const SentencePieceFile& file,
                                                    const PieceTable& pieces) {
  return std::make_unique<LookupSegmenter>(file, pieces, character_end);
}

bool takes_spaces(const SentencePieceFile& file, const PieceTable& pieces) {
  const bool looks_words_up =
      file.algorithm == SentencePieceAlgorithm::unigram ||
      (file.algorithm == SentencePieceAlgorithm::bpe && !pieces.has(PieceType::unused));
  return looks_words_up && file.normalization.escape_whitespaces &&
         !pieces.has(PieceType::user_defined);
}

std::unique_ptr<Segmenter> make_segmenter(const SentencePieceFile& file, const PieceTable& pieces) {
  switch (file.algorithm) {
    case SentencePieceAlgorithm::unigram:
      return make_unigram_segmenter(file, pieces);
    case SentencePieceAlgorithm::bpe:
      return pieces.has(PieceType::unused) ? make_unused_bpe_segmenter(file, pieces)
                                           : make_bpe_segmenter(file, pieces);
    case SentencePieceAlgorithm::word:
      return make_word_segmenter(file, pieces);
    case SentencePieceAlgorithm::character:
      break;
  }
  return make_character_segmenter(file, pieces);
}

}  // namespace bloomery
