#include "tokenizer/train/merge_learner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace bloomery {

bool MergeLearner::Candidate::operator<(const Candidate& other) const {
  if (count != other.count) return count < other.count;
  if (pair != other.pair) return other.pair < pair;
  return list > other.list;
}

MergeLearner::MergeLearner(const WordCounts& words,
                           const std::array<std::uint32_t, 256>& id_of_byte) {
  lay_out(words, id_of_byte);
  list_places();
}

void MergeLearner::lay_out(const WordCounts& words,
                           const std::array<std::uint32_t, 256>& id_of_byte) {
  std::size_t num_slots = 1;
  words.for_each([&](std::string_view word, std::uint64_t) { num_slots += word.size() + 1; });
  check(words.size() < std::numeric_limits<std::uint32_t>::max(), "more than 2^32 words");
  slots_.reserve(num_slots);
  starts_.reserve(words.size());
  counts_.reserve(words.size());
  slots_.push_back({kBoundary, 1});
  words.for_each([&](std::string_view word, std::uint64_t count) {
    starts_.push_back(slots_.size());
    counts_.push_back(static_cast<std::int64_t>(count));
    for (const char byte : word) {
      slots_.push_back({id_of_byte[static_cast<unsigned char>(byte)], 1});
    }
    slots_.push_back({kBoundary, 1});
  });
}

void MergeLearner::list_places() {
  for (std::uint32_t word = 0; word < starts_.size(); ++word) {
    const Slot* slot = &slots_[starts_[word]];
    for (std::uint32_t at = 0; slot[at + 1].token != kBoundary; ++at) {
      add_place({slot[at].token, slot[at + 1].token}, {word, at}, counts_[word]);
    }
  }
  queue_new_lists();
}

std::optional<MergeLearner::Best> MergeLearner::best() {
  while (!queue_.empty()) {
    Candidate top = queue_.top();
    const std::int64_t count = pairs_.at(top.pair).count;
    if (top.count == count) {
      if (count < 1) break;
      return Best{top.pair, count};
    }
    queue_.pop();
    top.count = count;
    queue_.push(top);
  }
  return std::nullopt;
}

void MergeLearner::merge(std::uint32_t token) {
  const Candidate top = queue_.top();
  queue_.pop();
  std::vector<Place> places = std::move(lists_[top.list]);
  lists_[top.list].clear();
  const PairRecord& record = pairs_.at(top.pair);
  if (record.newest != top.list || older_list_[top.list] != PairRecord::kNoList) {
    add_places_in_same_words(record.newest, places);
  }
  for (const Place& place : places) {
    merge_at(place, top.pair, token);
  }
  queue_new_lists();
}

// Places of one pair may be in several lists. A word that is in the one that is merged is merged
// whole: its places in the others come along, and are found taken when their turn comes.
void MergeLearner::add_places_in_same_words(std::uint32_t newest,
                                            std::vector<Place>& places) const {
  const auto in_order = [](const Place& a, const Place& b) {
    return std::pair(a.word, a.offset) < std::pair(b.word, b.offset);
  };
  const std::vector<Place> asked = places;
  for (std::uint32_t list = newest; list != PairRecord::kNoList; list = older_list_[list]) {
    auto word = asked.begin();
    for (const Place& place : lists_[list]) {
      while (word != asked.end() && word->word < place.word) ++word;
      if (word == asked.end()) break;
      if (word->word == place.word) places.push_back(place);
    }
  }
  std::ranges::sort(places, in_order);
}

void MergeLearner::merge_at(const Place& place, TokenPair pair, std::uint32_t token) {
  Slot* first = &slots_[starts_[place.word] + place.offset];
  Slot* second = first + first->length;
  // An earlier merge, or this one just before, may have taken one of the two.
  if (first->token != pair.left || second->token != pair.right) return;
  const std::uint32_t length_before = first[-1].length;
  const std::uint32_t before = first[-static_cast<std::ptrdiff_t>(length_before)].token;
  const std::uint32_t after = second[second->length].token;
  const std::uint32_t length = first->length + second->length;
  second->token = kInside;
  first->token = token;
  first->length = length;
  first[length - 1].length = length;

  const std::int64_t count = counts_[place.word];
  if (before != kBoundary) {
    pairs_.at({before, pair.left}).count -= count;
    add_place({before, token}, {place.word, place.offset - length_before}, count);
  }
  if (after != kBoundary) {
    pairs_.at({pair.right, after}).count -= count;
    add_place({token, after}, place, count);
  }
}

void MergeLearner::add_place(TokenPair pair, const Place& place, std::int64_t count) {
  PairRecord& record = pairs_.at(pair);
  record.count += count;
  if (record.list == PairRecord::kNoList) {
    record.list = static_cast<std::uint32_t>(lists_.size());
    lists_.emplace_back();
    older_list_.push_back(PairRecord::kNoList);
    new_lists_.push_back(pair);
  }
  lists_[record.list].push_back(place);
}

void MergeLearner::queue_new_lists() {
  for (const TokenPair pair : new_lists_) {
    PairRecord& record = pairs_.at(pair);
    if (record.count > 0) {
      queue_.push({record.count, pair, record.list});
      older_list_[record.list] = record.newest;
      record.newest = record.list;
    } else {
      lists_[record.list] = {};
    }
    record.list = PairRecord::kNoList;
  }
  new_lists_.clear();
}

}  // namespace bloomery
