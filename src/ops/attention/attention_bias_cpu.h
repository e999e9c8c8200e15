// The bias of scores by distance, for the kernels of attention on the CPU. For *_cpu.cpp files
// only.
#pragma once

#include <array>

#include "ops/attention/attention_pack_cpu.h"

namespace bloomery {
namespace {

inline std::int64_t num_distances(const AttentionProblem& p) { return 2 * p.bias_reach + 1; }

// The bias of one block of queries against tiles of keys, and its gradient. Where places are
// indices, keys and queries of the same distance lie on diagonals of a tile [key, query]: a line of
// numbers, of which the rows of the tile are overlapping pieces.
template <class Real>
class BiasTile {
 public:
  BiasTile(const AttentionProblem& p, std::int64_t sequence, std::int64_t head, std::int64_t query,
           std::int64_t rows)
      : bias_(p.bias != nullptr ? static_cast<const Real*>(p.bias) + head * num_distances(p)
                                : nullptr),
        reach_(p.bias_reach),
        key_length_(p.key_length),
        first_place_(query + p.key_length - p.query_length),
        rows_(rows),
        key_places_(p.places_of_keys(sequence)) {
    for (std::int64_t i = 0; bias_ != nullptr && key_places_ != nullptr && i < rows; ++i) {
      query_places_[i] = p.places.place(sequence * p.query_length + query + i);
    }
  }

  explicit operator bool() const { return bias_ != nullptr; }

  // scores [keys][kQueryBlock] of keys from `tile`.
  void add(std::int64_t tile, std::int64_t keys, Real* scores) const {
    keys = std::min(keys, key_length_ - tile);
    if (key_places_ != nullptr) {
      for_pairs(tile, keys,
                [&](std::int64_t at, std::int64_t distance) { scores[at] += bias_[distance]; });
      return;
    }
    std::array<Real, kKeyTile + kQueryBlock> line;
    for (std::int64_t t = 0; t < keys + rows_ - 1; ++t) {
      line[t] = bias_[index_on_line(tile, keys, t)];
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      Real* const row = scores + j * kQueryBlock;
      const Real* const piece = line.data() + keys - 1 - j;
      for (std::int64_t i = 0; i < rows_; ++i) {
        row[i] += piece[i];
      }
    }
  }

  // grad [distances] += score_grads [keys][kQueryBlock] of keys from `tile`.
  void add_grad(std::int64_t tile, std::int64_t keys, const Real* score_grads, Real* grad) const {
    keys = std::min(keys, key_length_ - tile);
    if (key_places_ != nullptr) {
      for_pairs(tile, keys,
                [&](std::int64_t at, std::int64_t distance) { grad[distance] += score_grads[at]; });
      return;
    }
    std::array<Real, kKeyTile + kQueryBlock> line{};
    for (std::int64_t j = 0; j < keys; ++j) {
      const Real* const row = score_grads + j * kQueryBlock;
      Real* const piece = line.data() + keys - 1 - j;
      for (std::int64_t i = 0; i < rows_; ++i) {
        piece[i] += row[i];
      }
    }
    for (std::int64_t t = 0; t < keys + rows_ - 1; ++t) {
      grad[index_on_line(tile, keys, t)] += line[t];
    }
  }

 private:
  // Of element t of the line of `keys` keys from `tile`: key j and query i are at keys - 1 - j + i.
  std::int64_t index_on_line(std::int64_t tile, std::int64_t keys, std::int64_t t) const {
    return distance_index(tile + keys - 1 - t - first_place_, reach_);
  }

  // Calls visit(index in the tile, index of the distance).
  template <class Visit>
  void for_pairs(std::int64_t tile, std::int64_t keys, const Visit& visit) const {
    for (std::int64_t j = 0; j < keys; ++j) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        visit(j * kQueryBlock + i,
              distance_index(key_places_[tile + j] - query_places_[i], reach_));
      }
    }
  }

  const Real* const bias_;  // of the head, or null
  const std::int64_t reach_, key_length_;
  const std::int64_t first_place_, rows_;  // of the block's queries
  const std::int32_t* const key_places_;   // null: their indices
  std::array<std::int32_t, kQueryBlock> query_places_{};
};

}  // namespace
}  // namespace bloomery
