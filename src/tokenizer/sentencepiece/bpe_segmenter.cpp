// Byte-pair merging of characters: two neighbours join where their text together is a piece, the
// piece of the highest score first, the leftmost of equals.
#include <algorithm>
#include <bitset>

#include "tokenizer/bpe/merge.h"
#include "tokenizer/sentencepiece/normalizer.h"
#include "tokenizer/sentencepiece/piece_cache.h"
#include "tokenizer/sentencepiece/segmenter.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// While merging, a part is the id of its piece or, of a character that is no piece, this number
// plus its code: such characters too join their neighbours where the whole is a piece.
constexpr TokenId kFirstCharacter = 1 << 30;

bool is_character(TokenId part) { return part >= kFirstCharacter; }

// The ends of a character by which safe cuts are found: its first or last byte, and a byte that
// UTF-8 does not have for ▁, which is much more frequent than its neighbours.
constexpr std::size_t kSpaceEnd = 0xFF;

struct CharacterEnds {
  std::size_t first, last, length;
};

CharacterEnds ends_of(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, first, 1};
  if (text.compare(at, kSpaceSymbol.size(), kSpaceSymbol) == 0) {
    return {kSpaceEnd, kSpaceEnd, kSpaceSymbol.size()};
  }
  const auto length = static_cast<std::size_t>(utf8_at(text, at).length);
  return {first, static_cast<unsigned char>(text[at + length - 1]), length};
}

class BpeSegmenter : public Segmenter {
 public:
  BpeSegmenter(const SentencePieceFile& file, const PieceTable& pieces)
      : writer_(file, pieces),
        pieces_(pieces),
        user_defined_(pieces.user_defined()),
        has_user_defined_(pieces.has(PieceType::user_defined)) {
    for (std::size_t i = 0; i < file.pieces.size(); ++i) {
      output_.push_back(pieces.id_of(file.pieces[i].text));
      if (file.pieces[i].type == PieceType::normal) {
        mergeable_.emplace(file.pieces[i].text, static_cast<TokenId>(i));
      }
    }
    find_characters();
    find_cuts();
    merges_ = MergeTable(find_merges(ranks_by_score(file)));
  }

  std::unique_ptr<SegmenterSession> make_session() const override;

 private:
  friend class BpeSession;

  // The part that a single character is.
  TokenId part_of(char32_t code) const {
    if (code < characters_.size()) return characters_[code];
    const auto found = rare_characters_.find(code);
    return found == rare_characters_.end() ? kFirstCharacter + static_cast<TokenId>(code)
                                           : found->second;
  }
  std::optional<TokenId> part_of(std::string_view text) const {
    if (const auto found = mergeable_.find(text); found != mergeable_.end()) return found->second;
    const Utf8Char first = utf8_at(text, 0);
    if (static_cast<std::size_t>(first.length) != text.size()) return std::nullopt;
    return kFirstCharacter + static_cast<TokenId>(first.code);
  }

  void find_characters();
  void find_cuts();
  static std::vector<std::int32_t> ranks_by_score(const SentencePieceFile& file);
  std::vector<Merge> find_merges(const std::vector<std::int32_t>& ranks) const;

  SegmentWriter writer_;
  const PieceTable& pieces_;
  ByteTrie user_defined_;
  bool has_user_defined_;
  std::unordered_map<std::string_view, TokenId> mergeable_;
  std::vector<TokenId> output_;      // by id: the piece that has this text, a reserved one first
  std::vector<TokenId> characters_;  // of the basic plane
  std::unordered_map<char32_t, TokenId> rare_characters_;
  MergeTable merges_{std::span<const Merge>()};
  // Which ends of characters meet inside pieces. Between two that never do, a text may be cut:
  // merging the parts by themselves gives what merging the whole gives.
  std::bitset<256 * 256> meets_;
};

void BpeSegmenter::find_characters() {
  constexpr char32_t kBasicPlane = 0x10000;
  characters_.resize(kBasicPlane);
  for (char32_t code = 0; code < kBasicPlane; ++code) {
    characters_[code] = kFirstCharacter + static_cast<TokenId>(code);
  }
  for (const auto& [text, id] : mergeable_) {
    const Utf8Char first = utf8_at(text, 0);
    if (static_cast<std::size_t>(first.length) != text.size()) continue;
    (first.code < kBasicPlane ? characters_[first.code] : rare_characters_[first.code]) = id;
  }
}

void BpeSegmenter::find_cuts() {
  for (const auto& [text, id] : mergeable_) {
    std::size_t last = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CharacterEnds next = ends_of(text, at);
      if (at > 0) meets_.set(last << 8 | next.first);
      last = next.last;
      at += next.length;
    }
  }
}

// Equal scores have equal ranks, so that the leftmost of them comes first.
std::vector<std::int32_t> BpeSegmenter::ranks_by_score(const SentencePieceFile& file) {
  std::vector<float> scores;
  for (const SentencePieceEntry& piece : file.pieces) scores.push_back(piece.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<std::int32_t> ranks;
  for (const SentencePieceEntry& piece : file.pieces) {
    const auto at = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
    ranks.push_back(static_cast<std::int32_t>(at - scores.begin()));
  }
  return ranks;
}

std::vector<Merge> BpeSegmenter::find_merges(const std::vector<std::int32_t>& ranks) const {
  std::vector<Merge> merges;
  for (const auto& [text, id] : mergeable_) {
    for (auto at = static_cast<std::size_t>(utf8_at(text, 0).length); at < text.size();
         at += static_cast<std::size_t>(utf8_at(text, at).length)) {
      const auto left = part_of(text.substr(0, at)), right = part_of(text.substr(at));
      if (left && right) merges.push_back({*left, *right, id, ranks[static_cast<std::size_t>(id)]});
    }
  }
  return merges;
}

class BpeSession : public SegmenterSession {
 public:
  explicit BpeSession(const BpeSegmenter& segmenter) : segmenter_(segmenter) {}

  void segment(std::string_view text, std::vector<TokenId>& ids) override {
    if (!segmenter_.has_user_defined_) {
      cut(text, ids);
      return;
    }
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const ByteTrie::Match symbol = segmenter_.user_defined_.longest(text, at);
      if (symbol.length == 0) {
        at += static_cast<std::size_t>(utf8_at(text, at).length);
        continue;
      }
      cut(text.substr(done, at - done), ids);
      const std::string_view found = text.substr(at, symbol.length);
      segmenter_.writer_.write(found, segmenter_.pieces_.id_of(found), ids);
      done = at += symbol.length;
    }
    cut(text.substr(done), ids);
  }

 private:
  // Cuts text without user-defined symbols at the safe places.
  void cut(std::string_view text, std::vector<TokenId>& ids) {
    std::size_t begin = 0, last = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CharacterEnds next = ends_of(text, at);
      if (at > begin && !segmenter_.meets_[last << 8 | next.first]) {
        word(text.substr(begin, at - begin), ids);
        begin = at;
      }
      last = next.last;
      at += next.length;
    }
    word(text.substr(begin), ids);
  }

  void word(std::string_view word, std::vector<TokenId>& ids) {
    if (word.empty()) return;
    if (word.size() > PieceCache::kLongestWord) {
      merge(word, ids);
      return;
    }
    const std::uint64_t hash = PieceCache::hash(word);
    if (cache_.append(word, hash, ids)) return;
    const std::size_t before = ids.size();
    merge(word, ids);
    cache_.add(word, hash, std::span(ids).subspan(before));
  }

  void merge(std::string_view word, std::vector<TokenId>& ids) {
    parts_.clear();
    for (std::size_t at = 0; at < word.size();) {
      const Utf8Char next = utf8_at(word, at);
      parts_.push_back(segmenter_.part_of(next.code));
      at += static_cast<std::size_t>(next.length);
    }
    segmenter_.merges_.apply(parts_, scratch_);
    for (const TokenId part : parts_) {
      if (is_character(part)) {
        character_.clear();
        append_utf8(character_, static_cast<char32_t>(part - kFirstCharacter));
        segmenter_.writer_.write(character_, segmenter_.pieces_.id_of(character_), ids);
      } else {
        const TokenId id = segmenter_.output_[static_cast<std::size_t>(part)];
        segmenter_.writer_.write(segmenter_.pieces_[part].text, id, ids);
      }
    }
  }

  const BpeSegmenter& segmenter_;
  PieceCache cache_;
  std::vector<TokenId> parts_;
  MergeScratch scratch_;
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
