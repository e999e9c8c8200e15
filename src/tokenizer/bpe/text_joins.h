// Which neighbours of a piece join, found by their text: together they must be a token. The
// vocabulary itself is the table, so that a model is ready as soon as its tokens are read.
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/bpe/part_merger.h"
#include "tokenizer/vocabulary.h"

namespace bloomery {

class TextJoins {
 public:
  // None, until merges are added.
  TextJoins() = default;
  // Whatever together is a token joins, the lowest id first.
  static TextJoins by_id() {
    TextJoins joins;
    joins.kind_ = Kind::ids;
    return joins;
  }
  // The same by ranks that ids have; Join::kNever: not this token.
  static TextJoins by_rank(std::vector<std::uint32_t> ranks) {
    TextJoins joins;
    joins.kind_ = Kind::ranks;
    joins.of_id_ = std::move(ranks);
    return joins;
  }

  void reserve(std::size_t merges, TokenId end_id) {
    merges_.reserve(merges);
    of_id_.reserve(static_cast<std::size_t>(end_id));
  }
  // The token forms of a beginning of so many bytes and the rest. What is added first joins first;
  // of a merge that is added twice the later one counts.
  void add(TokenId token, std::size_t left_bytes) {
    const auto id = static_cast<std::size_t>(token);
    if (id >= of_id_.size()) of_id_.resize(id + 1, Join::kNever);
    check(merges_.size() < Join::kMaxRanks, "the vocabulary has more merges than the ",
          Join::kMaxRanks, " that are supported");
    merges_.push_back({static_cast<std::uint32_t>(left_bytes), of_id_[id]});
    of_id_[id] = static_cast<std::uint32_t>(merges_.size() - 1);
  }

  // What two neighbours become: `text`, which the first of them begins with `left_bytes`.
  Join find(const Vocabulary& tokens, std::string_view text, std::size_t left_bytes) const {
    if (text.size() > tokens.longest()) return {};
    const TokenId token = tokens.id_of(text);
    if (token < 0) return {};
    const auto id = static_cast<std::uint32_t>(token);
    if (kind_ == Kind::ids) return {id, id};
    if (id >= of_id_.size()) return {};
    std::uint32_t rank = of_id_[id];
    if (kind_ == Kind::merges) {
      while (rank != Join::kNever && merges_[rank].left_bytes != left_bytes) {
        rank = merges_[rank].next;
      }
    }
    return {rank, id};
  }

 private:
  enum class Kind { merges, ranks, ids };
  struct Merge {
    std::uint32_t left_bytes;
    std::uint32_t next;  // of those with the same result, the one added before
  };

  Kind kind_ = Kind::merges;
  std::vector<std::uint32_t> of_id_;  // the rank, or the merge that was added last
  std::vector<Merge> merges_;         // by rank
};

}  // namespace bloomery
