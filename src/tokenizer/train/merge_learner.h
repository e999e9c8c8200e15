// Finds the most frequent pair of neighbouring tokens in counted words, again and again, while the
// caller decides what the pair becomes.
//
// Every place where two tokens meet is listed once, with its pair; a merge visits the places of its
// pair alone and lists the places that it makes. The work of all merges together is therefore
// bounded by the places that ever exist, at most one for each byte of the words and merge in it,
// and not by the number of merges times the size of the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "tokenizer/train/pair_counts.h"
#include "tokenizer/train/word_counts.h"

namespace bloomery {

class MergeLearner {
 public:
  struct Best {
    TokenPair pair;
    std::int64_t count;
  };

  // `id_of_byte`: the tokens that words consist of at first, all different.
  MergeLearner(const WordCounts& words, const std::array<std::uint32_t, 256>& id_of_byte);

  // The pair with the largest count, and among equals the one with the smallest ids; nothing when
  // no pair is left.
  std::optional<Best> best();
  // Makes every place of the pair that best() gave one token. `token` may be one that exists: two
  // pairs may spell the same. Places that such a token makes for a pair that was merged or waits
  // already are a candidate of their own, with the count of all places ever counted for the pair:
  // this is how the reference trainer goes about it, and what its results depend on.
  void merge(std::uint32_t token);

 private:
  struct Place {
    std::uint32_t word, offset;  // of the left token's first byte, in the word
  };
  // The tokens of a word lie at the slots of their first bytes. The length is also in the slot of
  // the last byte, so that one finds the token before. Slots of kBoundary lie between words.
  struct Slot {
    std::uint32_t token, length;
  };
  static constexpr std::uint32_t kBoundary = ~std::uint32_t{0};
  static constexpr std::uint32_t kInside = kBoundary - 1;  // the token there was merged leftwards

  struct Candidate {
    std::int64_t count;
    TokenPair pair;
    std::uint32_t list;

    // By count; among equals the smaller pair is larger, then the older list.
    bool operator<(const Candidate& other) const;
  };

  void lay_out(const WordCounts& words, const std::array<std::uint32_t, 256>& id_of_byte);
  void list_places();
  void add_places_in_same_words(std::uint32_t newest, std::vector<Place>& places) const;
  void merge_at(const Place& place, TokenPair pair, std::uint32_t token);
  void add_place(TokenPair pair, const Place& place, std::int64_t count);
  void queue_new_lists();

  std::vector<Slot> slots_;
  std::vector<std::uint64_t> starts_;  // of words, in slots_
  std::vector<std::int64_t> counts_;   // of words
  PairCounts pairs_;
  std::vector<std::vector<Place>> lists_;  // each in the order of words and offsets
  std::vector<std::uint32_t> older_list_;  // of each list: the one of the same pair before it
  std::vector<TokenPair> new_lists_;       // the last of lists_, of these pairs
  std::priority_queue<Candidate> queue_;
};

}  // namespace bloomery
