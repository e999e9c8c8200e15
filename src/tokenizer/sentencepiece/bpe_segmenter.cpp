// Byte-pair merging of characters: two neighbours join where their text together is a piece, the
// piece of the highest score first, the leftmost of equals.
#include <algorithm>
#include <array>
#include <bitset>
#include <unordered_map>

#include "base/error.h"
#include "tokenizer/bpe/divisions.h"
#include "tokenizer/bpe/part_merger.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/sentencepiece/normalizer.h"
#include "tokenizer/sentencepiece/segmenter.h"
#include "tokenizer/unicode/code_set.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace bloomery {
namespace {

// While merging, a part is the id of its piece or, of a character that is no piece, its code after
// all ids: such characters too join their neighbours where the whole is a piece.
using Part = std::uint32_t;

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
        has_user_defined_(pieces.has(PieceType::user_defined)),
        first_character_(static_cast<Part>(file.pieces.size())) {
    constexpr std::size_t kMostPieces = MergeRules::kMaxParts - kLastCode - 1;
    check(file.pieces.size() <= kMostPieces, "the model has ", file.pieces.size(),
          " pieces; at most ", kMostPieces, " are supported");
    for (std::size_t i = 0; i < file.pieces.size(); ++i) {
      output_.push_back(pieces.id_of(file.pieces[i].text));
      if (file.pieces[i].type == PieceType::normal) {
        mergeable_.add(file.pieces[i].text, static_cast<TokenId>(i));
      }
    }
    find_characters();
    find_cuts();
    find_merges(file);
  }

  std::unique_ptr<SegmenterSession> make_session() const override;

 private:
  friend class BpeSession;

  // The part that a single character is.
  Part part_of(char32_t code) const {
    if (code < characters_.size()) return characters_[code];
    const auto found = rare_characters_.find(code);
    return found == rare_characters_.end() ? first_character_ + code : found->second;
  }
  // The part that a text is: a piece, if there is one of this id, or a character.
  std::optional<Part> part_of(std::string_view text, TokenId id) const {
    if (id >= 0) return static_cast<Part>(id);
    const Utf8Char first = utf8_at(text, 0);
    if (static_cast<std::size_t>(first.length) != text.size()) return std::nullopt;
    return first_character_ + first.code;
  }
  // Calls visit(text, id) for each piece that merging may make.
  template <class Visit>
  void each_mergeable(const Visit& visit) const {
    for (TokenId id = 0; id < mergeable_.end_id(); ++id) {
      if (const auto text = mergeable_.piece(id)) visit(*text, id);
    }
  }

  void find_characters();
  void find_cuts();
  void find_merges(const SentencePieceFile& file);

  SegmentWriter writer_;
  const PieceTable& pieces_;
  ByteTrie user_defined_;
  bool has_user_defined_;
  Part first_character_;
  Vocabulary mergeable_;
  std::vector<TokenId> output_;   // by id: the piece that has this text, a reserved one first
  std::vector<Part> characters_;  // of the basic plane
  std::unordered_map<char32_t, Part> rare_characters_;
  MergeRules rules_;
  // Which ends of characters meet inside pieces. Between two that never do, a text may be cut:
  // merging the parts by themselves gives what merging the whole gives.
  std::bitset<256 * 256> meets_;
};

void BpeSegmenter::find_characters() {
  constexpr char32_t kBasicPlane = 0x10000;
  characters_.resize(kBasicPlane);
  for (char32_t code = 0; code < kBasicPlane; ++code) characters_[code] = first_character_ + code;
  each_mergeable([&](std::string_view text, TokenId id) {
    const Utf8Char first = utf8_at(text, 0);
    if (static_cast<std::size_t>(first.length) != text.size()) return;
    (first.code < kBasicPlane ? characters_[first.code] : rare_characters_[first.code]) =
        static_cast<Part>(id);
  });
}

void BpeSegmenter::find_cuts() {
  each_mergeable([&](std::string_view text, TokenId) {
    std::size_t last = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CharacterEnds next = ends_of(text, at);
      if (at > 0) meets_.set(last << 8 | next.first);
      last = next.last;
      at += next.length;
    }
  });
}

// Equal scores have equal ranks, so that the leftmost of them comes first.
void BpeSegmenter::find_merges(const SentencePieceFile& file) {
  std::vector<std::pair<float, TokenId>> order;
  each_mergeable([&](std::string_view, TokenId id) {
    order.emplace_back(-file.pieces[static_cast<std::size_t>(id)].score, id);
  });
  std::ranges::sort(order);
  std::vector<MergeRule> rules;
  std::vector<std::uint32_t> ranks;
  std::uint32_t rank = 0;
  Divisions divisions(mergeable_);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [score, id] = order[i];
    rank += i > 0 && score != order[i - 1].first;
    const std::string_view text = *mergeable_.piece(id);
    divisions.take(text);
    for (auto at = static_cast<std::size_t>(utf8_at(text, 0).length); at < text.size();
         at += static_cast<std::size_t>(utf8_at(text, at).length)) {
      const auto left = part_of(text.substr(0, at), divisions.first(at));
      const auto right = left ? part_of(text.substr(at), divisions.second(at)) : std::nullopt;
      if (!right) continue;
      rules.push_back({*left, *right, static_cast<Part>(id)});
      ranks.push_back(rank);
    }
  }
  rules_ = MergeRules(rules, std::move(ranks));
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
        word(text.substr(begin, at - begin), text.size() - begin, ids);
        begin = at;
      }
      last = next.last;
      at += next.length;
    }
    word(text.substr(begin), text.size() - begin, ids);
    look_up(ids);
  }

  // Words are looked up some at a time, so that the cache's memory is there by then.
  void word(std::string_view word, std::size_t readable, std::vector<TokenId>& ids) {
    if (word.empty()) return;
    // The mark of a word's start is left out of the key, so that longer words fit in.
    const bool marked = word.starts_with(kSpaceSymbol);
    const std::size_t start = marked ? kSpaceSymbol.size() : 0;
    const std::size_t size = word.size() - start;
    Waiting& next = waiting_[num_waiting_++];
    next = {word, {}, size <= WordKey::kMaxLength};
    if (next.has_key) {
      next.key = WordKey::of(word.data() + start, size, readable - start, marked);
      cache_.prefetch(next.key);
    }
    if (num_waiting_ == waiting_.size()) look_up(ids);
  }

  void look_up(std::vector<TokenId>& ids) {
    for (std::size_t i = 0; i < num_waiting_; ++i) {
      const auto& [word, key, has_key] = waiting_[i];
      if (has_key && cache_.append(key, ids)) continue;
      const std::size_t before = ids.size();
      merge(word, ids);
      if (has_key) cache_.insert(key, std::span(ids).subspan(before));
    }
    num_waiting_ = 0;
  }

  void merge(std::string_view word, std::vector<TokenId>& ids) {
    parts_.clear();
    for (std::size_t at = 0; at < word.size();) {
      const Utf8Char next = utf8_at(word, at);
      parts_.push_back(segmenter_.part_of(next.code));
      at += static_cast<std::size_t>(next.length);
    }
    parts_.resize(merger_.merge(segmenter_.rules_, parts_.data(), parts_.size()));
    for (const Part part : parts_) {
      if (part >= segmenter_.first_character_) {
        character_.clear();
        append_utf8(character_, part - segmenter_.first_character_);
        segmenter_.writer_.write(character_, segmenter_.pieces_.id_of(character_), ids);
      } else {
        const TokenId id = segmenter_.output_[part];
        segmenter_.writer_.write(segmenter_.pieces_[static_cast<TokenId>(part)].text, id, ids);
      }
    }
  }

  const BpeSegmenter& segmenter_;
  WordCache cache_;
  struct Waiting {
    std::string_view word;
    WordKey key;
    bool has_key;
  };
  std::array<Waiting, 16> waiting_;
  std::size_t num_waiting_ = 0;
  std::vector<Part> parts_;
  PartMerger merger_;
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
