// Byte-pair merging for models with unused pieces. They take part in merging, but what ends as one
// is taken apart again into the two parts that last met to form it, anywhere in the text. That
// depends on the whole text, so that it is neither cut nor cached. Such models are rare.
#include <queue>
#include <unordered_map>

#include "tokenizer/sentencepiece/segmenter.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

class UnusedBpeSegmenter : public Segmenter {
 public:
  UnusedBpeSegmenter(const SentencePieceFile& file, const PieceTable& pieces)
      : writer_(file, pieces), pieces_(pieces), user_defined_(pieces.user_defined()) {
    for (std::size_t i = 0; i < file.pieces.size(); ++i) {
      const PieceType type = file.pieces[i].type;
      if (type == PieceType::normal || type == PieceType::unused) {
        mergeable_.emplace(file.pieces[i].text, static_cast<TokenId>(i));
      }
    }
  }

  std::unique_ptr<SegmenterSession> make_session() const override;

 private:
  friend class UnusedBpeSession;

  SegmentWriter writer_;
  const PieceTable& pieces_;
  ByteTrie user_defined_;
  std::unordered_map<std::string_view, TokenId> mergeable_;
};

class UnusedBpeSession : public SegmenterSession {
 public:
  explicit UnusedBpeSession(const UnusedBpeSegmenter& segmenter) : segmenter_(segmenter) {}

  void segment(std::string_view text, std::vector<TokenId>& ids) override {
    origins_.clear();
    split(text);
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i) offer(i, i + 1);
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      join(best);
    }
    for (std::size_t i = 0; i < parts_.size(); i = parts_[i].next) write(parts_[i].text, ids);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Part {
    std::string_view text;  // empty: joined to the one before
    std::size_t previous, next;
    bool frozen;  // a user-defined symbol
  };
  struct Candidate {
    float score;
    std::size_t left, right, size;
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  void split(std::string_view text) {
    parts_.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t symbol = segmenter_.user_defined_.longest(text, at).length;
      const std::size_t length =
          symbol > 0 ? symbol : static_cast<std::size_t>(utf8_at(text, at).length);
      const std::size_t i = parts_.size();
      parts_.push_back({text.substr(at, length), i - 1, i + 1, symbol > 0});
      at += length;
    }
    if (parts_.empty()) return;
    parts_.front().previous = kNone;
    parts_.back().next = kNone;
  }

  void offer(std::size_t left, std::size_t right) {
    if (left == kNone || right == kNone || parts_[left].frozen || parts_[right].frozen) return;
    const std::string_view a = parts_[left].text, b = parts_[right].text;
    const std::string_view whole(a.data(), a.size() + b.size());
    const auto found = segmenter_.mergeable_.find(whole);
    if (found == segmenter_.mergeable_.end()) return;
    const SentencePieceEntry& piece = segmenter_.pieces_[found->second];
    queue_.push({piece.score, left, right, whole.size()});
    if (piece.type == PieceType::unused) origins_[whole] = {a, b};
  }

  void join(const Candidate& candidate) {
    Part& left = parts_[candidate.left];
    Part& right = parts_[candidate.right];
    if (left.text.empty() || right.text.empty() ||
        left.text.size() + right.text.size() != candidate.size) {
      return;  // one of them has joined another since
    }
    left.text = {left.text.data(), candidate.size};
    left.next = right.next;
    if (left.next != kNone) parts_[left.next].previous = candidate.left;
    right.text = {};
    offer(left.previous, candidate.left);
    offer(candidate.left, left.next);
  }

  // Pieces get shorter from step to step, so that this ends.
  void write(std::string_view text, std::vector<TokenId>& ids) {
    pending_.assign(1, text);
    while (!pending_.empty()) {
      const std::string_view part = pending_.back();
      pending_.pop_back();
      const TokenId id = segmenter_.pieces_.id_of(part);
      const auto origin =
          segmenter_.pieces_[id].type == PieceType::unused ? origins_.find(part) : origins_.end();
      if (origin == origins_.end()) {
        segmenter_.writer_.write(part, id, ids);
      } else {
        pending_.push_back(origin->second.second);
        pending_.push_back(origin->second.first);
      }
    }
  }

  const UnusedBpeSegmenter& segmenter_;
  std::vector<Part> parts_;
  std::priority_queue<Candidate> queue_;
  std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>> origins_;
  std::vector<std::string_view> pending_;
};

std::unique_ptr<SegmenterSession> UnusedBpeSegmenter::make_session() const {
  return std::make_unique<UnusedBpeSession>(*this);
}

}  // namespace

std::unique_ptr<Segmenter> make_unused_bpe_segmenter(const SentencePieceFile& file,
                                                     const PieceTable& pieces) {
  return std::make_unique<UnusedBpeSegmenter>(file, pieces);
}

}  // namespace bloomery
