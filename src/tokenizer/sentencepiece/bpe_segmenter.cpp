// Byte-pair merging of characters: two neighbours join where their text together is a piece, the
// piece of the highest score first, the leftmost of equals.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "tokenizer/bpe/metaspace_words.h"
#include "tokenizer/bpe/text_joins.h"
#include "tokenizer/sentencepiece/segmenter.h"
#include "tokenizer/unicode/code_set.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// While merging, a part is the id of its piece or, of a character that is no piece, its code after
// all ids: such characters too join their neighbours where the whole is a piece.
using Part = std::uint32_t;

class BpeSegmenter : public Segmenter {
 public:
  BpeSegmenter(const SentencePieceFile& file, const PieceTable& pieces)
      : writer_(file, pieces),
        pieces_(pieces),
        user_defined_(pieces.user_defined()),
        has_user_defined_(pieces.has(PieceType::user_defined)),
        takes_spaces_(takes_spaces(file, pieces)),
        first_character_(static_cast<Part>(file.pieces.size())) {
    constexpr std::size_t kMostPieces = Join::kMaxRanks - kLastCode - 1;
    check(file.pieces.size() <= kMostPieces, "the model has ", file.pieces.size(),
          " pieces; at most ", kMostPieces, " are supported");
    rank_pieces(file);
    for (std::size_t code = 0; code < ascii_.size(); ++code) {
      const char character = static_cast<char>(code);
      ascii_[code] = part_of({&character, 1}, static_cast<char32_t>(code));
    }
  }

  std::unique_ptr<SegmenterSession> make_session() const override;

 private:
  friend class BpeSession;

  Part part_of(std::string_view character, char32_t code) const {
    const TokenId id = pieces_.text().id_of(character);
    return id >= 0 && pieces_[id].type == PieceType::normal ? static_cast<Part>(id)
                                                            : first_character_ + code;
  }
  void rank_pieces(const SentencePieceFile& file);

  SegmentWriter writer_;
  const PieceTable& pieces_;
  ByteTrie user_defined_;
  bool has_user_defined_, takes_spaces_;
  Part first_character_;
  std::array<Part, 128> ascii_;
  TextJoins joins_;
  WordBorders borders_;
};

// Equal scores have equal ranks, so that the leftmost of them comes first.
void BpeSegmenter::rank_pieces(const SentencePieceFile& file) {
  std::vector<std::pair<float, TokenId>> order;
  order.reserve(file.pieces.size());
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    if (file.pieces[i].type != PieceType::normal) continue;
    order.emplace_back(-file.pieces[i].score, static_cast<TokenId>(i));
    borders_.join_inside(file.pieces[i].text);
  }
  if (!std::ranges::is_sorted(order)) std::ranges::sort(order);
  std::vector<std::uint32_t> ranks(file.pieces.size(), Join::kNever);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank += i > 0 && order[i].first != order[i - 1].first;
    ranks[static_cast<std::size_t>(order[i].second)] = rank;
  }
  joins_ = TextJoins::by_rank(std::move(ranks));
  if (takes_spaces_) borders_.take_spaces_for_marks();
}

class BpeSession : public SegmenterSession {
 public:
  explicit BpeSession(const BpeSegmenter& segmenter)
      : segmenter_(segmenter),
        words_(segmenter.takes_spaces_),
        reached_(segmenter.pieces_.size()) {}

  void segment(std::string_view text, std::vector<TokenId>& ids) override {
    std::size_t done = 0;
    for (std::size_t at = 0; segmenter_.has_user_defined_ && at < text.size();) {
      const ByteTrie::Match symbol = segmenter_.user_defined_.longest(text, at);
      if (symbol.length == 0) {
        at += static_cast<std::size_t>(utf8_at(text, at).length);
        continue;
      }
      encode(text.substr(done, at - done), ids);
      const std::string_view found = text.substr(at, symbol.length);
      segmenter_.writer_.write(found, segmenter_.pieces_.id_of(found), ids);
      done = at += symbol.length;
    }
    encode(text.substr(done), ids);
  }

 private:
  // Text without user-defined symbols.
  void encode(std::string_view text, std::vector<TokenId>& ids) {
    words_.encode(segmenter_.borders_, text, ids,
                  [&](std::string_view word, std::vector<TokenId>& its) {
                    encode_word(word, its);
                    return true;
                  });
  }

  void encode_word(std::string_view word, std::vector<TokenId>& ids) {
    const TokenId piece = segmenter_.pieces_.text().id_of(word);
    if (piece >= 0 && reached_[static_cast<std::size_t>(piece)]) {
      write(static_cast<Part>(piece), ids);
      return;
    }
    merge(word);
    for (const Part part : parts_) write(part, ids);
    if (parts_.size() == 1 && static_cast<TokenId>(parts_[0]) == piece) {
      reached_[static_cast<std::size_t>(piece)] = true;
    }
  }

  // Leaves the parts of the word in parts_.
  void merge(std::string_view word) {
    parts_.clear();
    begins_.clear();
    for (std::size_t at = 0; at < word.size();) {
      const Utf8Char next = utf8_at(word, at);
      const auto length = static_cast<std::size_t>(next.length);
      parts_.push_back(next.code < segmenter_.ascii_.size()
                           ? segmenter_.ascii_[next.code]
                           : segmenter_.part_of(word.substr(at, length), next.code));
      begins_.push_back(static_cast<std::uint32_t>(at));
      at += length;
    }
    begins_.push_back(static_cast<std::uint32_t>(word.size()));
    const Vocabulary& pieces = segmenter_.pieces_.text();
    const auto find = [&](std::size_t left, std::size_t right, std::size_t end) {
      const std::size_t begin = begins_[left];
      return segmenter_.joins_.find(pieces, word.substr(begin, begins_[end] - begin),
                                    begins_[right] - begin);
    };
    parts_.resize(merger_.merge(find, parts_.data(), parts_.size()));
  }

  // A reserved piece comes before the one that was merged.
  void write(Part part, std::vector<TokenId>& ids) {
    character_.clear();
    if (part >= segmenter_.first_character_) {
      append_utf8(character_, part - segmenter_.first_character_);
    }
    const std::string_view text =
        character_.empty() ? std::string_view(segmenter_.pieces_[static_cast<TokenId>(part)].text)
                           : std::string_view(character_);
    segmenter_.writer_.write(text, segmenter_.pieces_.id_of(text), ids);
  }

  const BpeSegmenter& segmenter_;
  MetaspaceWords words_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> begins_;  // of the characters, in the word, and its end
  PartMerger merger_;
  std::vector<bool> reached_;  // pieces that merging was seen to arrive at
  std::string character_;
};

std::unique_ptr<SegmenterSession> BpeSegmenter::make_session() const {
  return std::make_unique<BpeSession>(*this);
}

}  // namespace

std::unique_ptr<Segmenter> make_bpe_segmenter(const SentencePieceFile& file,
                                              const PieceTable& pieces) {
  return std::make_unique<BpeSegmenter>(file, pieces);
}

}  // namespace bloomery
