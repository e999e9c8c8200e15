#include "tokenizer/sentencepiece/segmenter.h"

#include <algorithm>
#include <cfloat>

#include "tokenizer/sentencepiece/normalizer.h"
#include "tokenizer/unigram/viterbi.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr float kUnknownPenalty = 10.0F;

class UnigramSegmenter : public Segmenter {
 public:
  UnigramSegmenter(const SentencePieceFile& file, const PieceTable& pieces)
      : writer_(file, pieces), viterbi_(make_viterbi(file, pieces)) {}

  std::unique_ptr<SegmenterSession> make_session() const override {
    return std::make_unique<Session>(*this);
  }

 private:
  class Session : public SegmenterSession {
   public:
    explicit Session(const UnigramSegmenter& segmenter) : segmenter_(segmenter) {}
    void segment(std::string_view text, std::vector<TokenId>& ids) override {
      segmenter_.viterbi_.segment(text, scratch_);
      for (const auto& [begin, end, id] : scratch_.segments) {
        segmenter_.writer_.write(text.substr(begin, end - begin), id, ids);
      }
    }

   private:
    const UnigramSegmenter& segmenter_;
    ViterbiScratch<float> scratch_;
  };

  static UnigramViterbi make_viterbi(const SentencePieceFile& file, const PieceTable& pieces) {
    float lowest = FLT_MAX;
    for (const SentencePieceEntry& piece : file.pieces) {
      if (piece.type == PieceType::normal) lowest = std::min(lowest, piece.score);
    }
    std::vector<UnigramPiece> found;
    for (std::size_t i = 0; i < file.pieces.size(); ++i) {
      const SentencePieceEntry& piece = file.pieces[i];
      const auto id = static_cast<TokenId>(i);
      if (piece.type == PieceType::normal) {
        found.push_back({piece.text, id, piece.score});
      } else if (piece.type == PieceType::user_defined) {
        // More than any other way to cover the text, and the longer the more.
        found.push_back({piece.text, id, 0.1 * static_cast<double>(piece.text.size()) - 0.1});
      }
    }
    return UnigramViterbi(found, pieces.unknown(), static_cast<double>(lowest - kUnknownPenalty));
  }

  SegmentWriter writer_;
  UnigramViterbi viterbi_;
};

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

std::unique_ptr<Segmenter> make_unigram_segmenter(const SentencePieceFile& file,
                                                  const PieceTable& pieces) {
  return std::make_unique<UnigramSegmenter>(file, pieces);
}

std::unique_ptr<Segmenter> make_word_segmenter(const SentencePieceFile& file,
                                               const PieceTable& pieces) {
  return std::make_unique<LookupSegmenter>(file, pieces, word_end);
}

std::unique_ptr<Segmenter> make_character_segmenter(const SentencePieceFile& file,
                                                    const PieceTable& pieces) {
  return std::make_unique<LookupSegmenter>(file, pieces, character_end);
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
