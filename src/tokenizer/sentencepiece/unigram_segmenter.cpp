// The likeliest pieces. Scores of paths are sums of floats over the whole text, as SentencePiece
// has them: how they are rounded depends on the text before. A word of its own is therefore known
// by its spelling only if no rounding could change how it is cut.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "tokenizer/bpe/metaspace_words.h"
#include "tokenizer/sentencepiece/segmenter.h"
#include "tokenizer/unigram/viterbi.h"

namespace bloomery {
namespace {

constexpr float kUnknownPenalty = 10.0F;
// While a sum is below the first, and the pieces of a word have scores below the second, no place
// in the word is beyond kLargestSum, where the count would begin again.
constexpr float kSafeSum = 0.9F * kLargestSum;
constexpr double kSafeScore = 0.1 * kLargestSum / 20;
// Numbers up to kLargestSum are rounded by less than 2^-8; a word of at most 16 characters has as
// many sums on each of two ways.
constexpr double kSafeMargin = 2 * 16 / 256.0;

class UnigramSegmenter : public Segmenter {
 public:
  UnigramSegmenter(const SentencePieceFile& file, const PieceTable& pieces)
      : writer_(file, pieces),
        pieces_(pieces),
        viterbi_(make_viterbi(file, pieces)),
        takes_spaces_(takes_spaces(file, pieces)) {
    bool is_safe = std::abs(viterbi_.unknown_score()) < kSafeScore;
    for (const SentencePieceEntry& piece : file.pieces) {
      if (!is_text(piece.type)) continue;
      borders_.join_inside(piece.text);
      is_safe &= std::abs(piece.score) < kSafeScore;
    }
    if (!is_safe) borders_.cut_nowhere();
    if (takes_spaces_) borders_.take_spaces_for_marks();
  }

  std::unique_ptr<SegmenterSession> make_session() const override;

 private:
  friend class UnigramSession;

  static UnigramViterbi make_viterbi(const SentencePieceFile& file, const PieceTable& pieces) {
    float lowest = FLT_MAX;
    for (const SentencePieceEntry& piece : file.pieces) {
      if (piece.type == PieceType::normal) lowest = std::min(lowest, piece.score);
    }
    std::vector<UnigramPiece> found;
    found.reserve(file.pieces.size());
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
  const PieceTable& pieces_;
  UnigramViterbi viterbi_;
  bool takes_spaces_;
  WordBorders borders_;  // words that no piece reaches across
};

class UnigramSession : public SegmenterSession {
 public:
  explicit UnigramSession(const UnigramSegmenter& segmenter)
      : segmenter_(segmenter), words_(segmenter.takes_spaces_) {}

  void segment(std::string_view text, std::vector<TokenId>& ids) override {
    float sum = 0;
    IdOutput output(ids, text.size());
    words_.each(segmenter_.borders_, text, [&](const MetaspaceWords::Word& word) {
      const bool is_safe = word.has_key() && std::abs(sum) <= kSafeSum;
      if (!is_safe || (!find(word, sum, output) && !learn(word, sum, output))) {
        cut(words_.spelled(word.text), sum, output);
      }
    });
  }

 private:
  const UnigramViterbi& viterbi() const { return segmenter_.viterbi_; }

  bool find(const MetaspaceWords::Word& word, float& sum, IdOutput& output) {
    TokenId* const ids = output.room(WordCache::kMaxIds);
    const std::size_t count = words_.cache().find(word.key, ids);
    for (std::size_t i = 0; i < count; ++i) {
      sum = static_cast<float>(viterbi().score(ids[i])) + sum;
    }
    output.advance(count);
    return count > 0;
  }

  // The same for a word that is new; false if rounding could matter, or its text is unknown.
  bool learn(const MetaspaceWords::Word& word, float& sum, IdOutput& output) {
    double alone = 0;
    viterbi().segment(words_.spelled(word.text), exact_, alone);
    if (UnigramViterbi::margin(exact_) <= kSafeMargin) return false;
    ids_.clear();
    for (const Segment& segment : exact_.segments) ids_.push_back(segment.id);
    if (std::ranges::find(ids_, segmenter_.pieces_.unknown()) != ids_.end()) return false;
    for (const TokenId id : ids_) sum = static_cast<float>(viterbi().score(id)) + sum;
    output.append(ids_);
    words_.cache().insert(word.key, ids_);
    return true;
  }

  void cut(std::string_view word, float& sum, IdOutput& output) {
    viterbi().segment(word, scratch_, sum);
    ids_.clear();
    for (const auto& [begin, end, id] : scratch_.segments) {
      segmenter_.writer_.write(word.substr(begin, end - begin), id, ids_);
    }
    output.append(ids_);
  }

  const UnigramSegmenter& segmenter_;
  ViterbiScratch<float> scratch_;
  ViterbiScratch<double> exact_;
  MetaspaceWords words_;
  std::vector<TokenId> ids_;
};

std::unique_ptr<SegmenterSession> UnigramSegmenter::make_session() const {
  return std::make_unique<UnigramSession>(*this);
}

}  // namespace

std::unique_ptr<Segmenter> make_unigram_segmenter(const SentencePieceFile& file,
                                                  const PieceTable& pieces) {
  return std::make_unique<UnigramSegmenter>(file, pieces);
}

}  // namespace bloomery
