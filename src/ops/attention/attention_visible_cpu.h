// Which keys the queries of a block see, for the kernels of attention on the CPU. For *_cpu.cpp
// files only.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "ops/attention/attention_pack_cpu.h"

namespace bloomery {
namespace {

constexpr std::int64_t kKeyAlignment = 32;  // of tiles: dropout draws for 32 keys at a time

template <class Real>
constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();

// Neighbouring queries whose visible keys are looked at together: a multiple of every vector.
constexpr std::int64_t kLaneGroup = 16;

// Rows of a tile of scores: [begin, end) are keys that some lane of a group sees, [all_begin,
// all_end) in it those that every lane sees.
struct SeenRows {
  std::int64_t begin, all_begin, all_end, end;
};

// The keys that each query of a block sees. Lanes past the last query repeat it. Keys are known by
// their places: where these are not the indices, nothing is known of their order.
class VisibleKeys {
 public:
  std::int64_t first = 0, last = 0;  // keys outside [first, last) are seen by no query

  VisibleKeys(const AttentionProblem& p, std::int64_t sequence, std::int64_t query,
              std::int64_t rows)
      : num_keys_(p.key_length), places_(p.places_of_keys(sequence)) {
    find_ranges(p, sequence, query, rows);
    const std::int32_t top = largest_end();
    any_ = {top, top, top, 0};
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::int32_t *low = begin_.data() + g * kLaneGroup,
                         *high = end_.data() + g * kLaneGroup;
      std::int32_t begin = top, end = 0, all_begin = 0, all_end = top;
      for (std::int64_t i = 0; i < kLaneGroup; ++i) {
        const bool some = low[i] < high[i];
        begin = std::min(begin, some ? low[i] : top);
        end = std::max(end, some ? high[i] : 0);
        all_begin = std::max(all_begin, low[i]);
        all_end = std::min(all_end, high[i]);
      }
      groups_[g] = {begin, all_begin, all_end, end};
      any_.begin = std::min<std::int64_t>(any_.begin, begin);
      any_.end = std::max<std::int64_t>(any_.end, end);
    }
    const SeenRows seen = places_ != nullptr ? scattered(any_, 0, num_keys_) : any_;
    first = std::min(seen.begin, num_keys_) / kKeyAlignment * kKeyAlignment;
    last = seen.end;
  }

  // Whether some query sees some of `keys` keys from `tile`, which are in [first, last).
  bool sees(std::int64_t tile, std::int64_t keys) const {
    if (places_ == nullptr) {
      return true;
    }
    const SeenRows seen = scattered(any_, tile, keys);
    return seen.begin < seen.end;
  }

  // What the group of lane `lane` sees of `keys` keys from `tile`.
  SeenRows rows(std::int64_t tile, std::int64_t keys, std::int64_t lane) const {
    const SeenRows& group = groups_[static_cast<std::size_t>(lane / kLaneGroup)];
    if (places_ != nullptr) {
      return scattered(group, tile, keys);
    }
    SeenRows seen{};
    seen.begin = std::clamp<std::int64_t>(group.begin - tile, 0, keys);
    seen.end = std::clamp<std::int64_t>(group.end - tile, seen.begin, keys);
    seen.all_begin = std::clamp<std::int64_t>(group.all_begin - tile, seen.begin, seen.end);
    seen.all_end = std::clamp<std::int64_t>(group.all_end - tile, seen.all_begin, seen.end);
    return seen;
  }

  // One vector of lanes from `lane`, scores [keys][kQueryBlock] at that lane: sets those of keys
  // that a query does not see, among the rows that some query of the group sees.
  template <class Real>
  void hide(const SeenRows& seen, std::int64_t tile, std::int64_t lane, Real* scores) const {
    if (places_ != nullptr) {
      const auto place = [places = places_ + tile](std::int64_t j) { return places[j]; };
      hide_rows(limits<Real>(begin_, lane, 0), limits<Real>(end_, lane, 0), seen.begin, seen.end,
                place, scores);
      return;
    }
    const auto begin = limits<Real>(begin_, lane, tile), end = limits<Real>(end_, lane, tile);
    const auto index = [](std::int64_t j) { return j; };
    hide_rows(begin, end, seen.begin, seen.all_begin, index, scores);
    hide_rows(begin, end, seen.all_end, seen.end, index, scores);
  }

 private:
  using Limits = std::array<std::int32_t, kQueryBlock>;
  // Integers as wide as Real, to be compared lane by lane.
  template <class Real>
  using Lane = std::conditional_t<sizeof(Real) == 8, std::int64_t, std::int32_t>;
  template <class Real>
  using Index = Vector<Lane<Real>>;

  // Of one vector of lanes, counted from place `start`.
  template <class Real>
  static Index<Real> limits(const Limits& keys, std::int64_t lane, std::int64_t start) {
    typename VectorOf<std::int32_t, kLanes<Real>>::type values;
    std::memcpy(&values, keys.data() + lane, sizeof values);
    return __builtin_convertvector(values, Index<Real>) - static_cast<Lane<Real>>(start);
  }

  // Rows [from, to) of scores, whose keys are at place_of(row).
  template <class Real, class PlaceOf>
  static void hide_rows(const Index<Real>& begin, const Index<Real>& end, std::int64_t from,
                        std::int64_t to, const PlaceOf& place_of, Real* scores) {
    for (std::int64_t j = from; j < to; ++j) {
      const Index<Real> place = Index<Real>{} + static_cast<Lane<Real>>(place_of(j));
      Real* const at = scores + j * kQueryBlock;
      const Vector<Real> hidden = Vector<Real>{} + kMinusInfinity<Real>;
      store_vector(at, ((place >= begin) & (place < end)) ? load_vector(at) : hidden);
    }
  }

  std::int32_t largest_end() const {
    return places_ != nullptr ? std::numeric_limits<std::int32_t>::max()
                              : static_cast<std::int32_t>(num_keys_);
  }

  // From the first to the last of `keys` keys from `tile` whose place is in the range of a group,
  // none of which is known to be seen by all.
  SeenRows scattered(const SeenRows& group, std::int64_t tile, std::int64_t keys) const {
    SeenRows seen{};
    const std::int64_t count = std::min(keys, num_keys_ - tile);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int32_t place = places_[tile + j];
      if (place >= group.begin && place < group.end) {
        seen.begin = seen.end == 0 ? j : seen.begin;
        seen.end = j + 1;
      }
    }
    seen.all_begin = seen.all_end = seen.begin;
    return seen;
  }

  void find_ranges(const AttentionProblem& p, std::int64_t sequence, std::int64_t query,
                   std::int64_t rows) {
    const std::int64_t token = sequence * p.query_length + query;
    const std::int32_t top = largest_end();
    const auto first_place = static_cast<std::int32_t>(query + p.key_length - p.query_length);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int32_t low = p.key_begin != nullptr ? p.key_begin[token + i] : 0;
      std::int32_t high = p.key_end != nullptr ? p.key_end[token + i] : top;
      if (p.causal) {
        const std::int32_t own = places_ != nullptr ? p.places.place(token + i)
                                                    : first_place + static_cast<std::int32_t>(i);
        low = std::max(low, static_cast<std::int32_t>(p.window_begin(own)));
        high = std::min(high, own + 1);
      }
      begin_[i] = std::max(low, 0);
      end_[i] = std::min(high, top);
    }
    std::fill(begin_.begin() + rows, begin_.end(), begin_[rows - 1]);
    std::fill(end_.begin() + rows, end_.end(), end_[rows - 1]);
  }

  const std::int64_t num_keys_;
  const std::int32_t* const places_;  // null: indices
  Limits begin_, end_;
  SeenRows any_;  // of all lanes
  std::array<SeenRows, kQueryBlock / kLaneGroup> groups_;
};

// Rows of scores that no lane of a vector sees become zeros.
template <class Real>
void clear_unseen(const SeenRows& seen, std::int64_t keys, Real* scores) {
  for (std::int64_t j = 0; j < seen.begin; ++j) {
    store_vector(scores + j * kQueryBlock, Vector<Real>{});
  }
  for (std::int64_t j = seen.end; j < keys; ++j) {
    store_vector(scores + j * kQueryBlock, Vector<Real>{});
  }
}

}  // namespace
}  // namespace bloomery
