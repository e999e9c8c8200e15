// What the forward and backward pass of attention on the CPU share. For *_cpu.cpp files only.
//
// Work is cut into tasks of one sequence and one group of heads, which pack the keys and values of
// the group once, and inside a task into blocks of queries of one head. The scores of a block
// against a tile of keys are kept transposed, [key, query]: a vector holds different queries, so
// that maxima, sums and masks need nothing across lanes. The matrix products are a parameter of
// both passes: VectorProducts or TileProducts.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/attention/attention_bias_cpu.h"
#include "ops/attention/attention_tile_products_cpu.h"
#include "ops/attention/attention_vector_products_cpu.h"
#include "ops/attention/attention_visible_cpu.h"
#include "ops/common/fast_math.h"

namespace bloomery {
namespace {

// e^(x / kUnit) of scores less the maximum or the log-sum-exp of their query, in units that the
// dtype T of the probabilities chooses; x is not above 0, but for rounding.
template <class T>
struct Exponential {
  using Real = Accumulator<T>;
  static constexpr bool kBrief = sizeof(T) == 2;
  static constexpr Real kUnit = kBrief ? Real(1.44269504088896340736) : Real(1);

  [[gnu::always_inline]] static Vector<Real> of(Vector<Real> x) {
    if constexpr (kBrief) {
      return brief_exp2<Vector<float>, Vector<std::int32_t>>(x);
    } else if constexpr (std::is_same_v<Real, float>) {
      return exp_up_to_88<Vector<float>, Vector<std::int32_t>>(x);
    } else {
      for (int lane = 0; lane < kLanes<Real>; ++lane) {
        x[lane] = std::exp(x[lane]);
      }
      return x;
    }
  }
};

// What the probabilities of one head and block of queries are multiplied by: 0 or 1 / (1 - p).
struct DropoutTile {
  const AttentionProblem& problem;
  const std::int32_t* key_places = nullptr;  // null: their indices
  // The words of each query's counters, but for the block.
  std::array<std::array<std::uint32_t, kQueryBlock>, 3> counters{};

  DropoutTile(const AttentionProblem& p, std::int64_t sequence, std::int64_t head_here,
              std::int64_t query, std::int64_t rows)
      : problem(p), key_places(p.places_of_keys(sequence)) {
    const auto head = static_cast<std::uint32_t>(p.first_head + head_here);
    for (std::int64_t i = 0; p.dropout_threshold > 0 && i < rows; ++i) {
      const std::int64_t token = sequence * p.query_length + query + i;
      const RandomBlock counter =
          dropout_counter(p.places.sample(token), p.places.place(token), head, 0);
      for (int word = 0; word < 3; ++word) {
        counters[word][i] = counter[word];
      }
    }
  }

  explicit operator bool() const { return problem.dropout_threshold > 0; }

  // factors [keys][kQueryBlock], for `keys` keys from `tile`, a multiple of 32.
  template <class Real>
  void factors(std::int64_t tile, std::int64_t keys, Real* to) const {
    for (std::int64_t start = 0; start < keys; start += kKeyAlignment) {
      const std::int64_t key = tile + start, count = std::min(kKeyAlignment, keys - start);
      Real* const rows = to + start * kQueryBlock;
      if (key_places == nullptr) {
        draw_run(key, count, rows);
      } else if (const std::int64_t known = std::min(count, problem.key_length - key);
                 is_aligned_run(key_places + key, known)) {
        draw_run(key_places[key], count, rows);
      } else {
        for (std::int64_t j = 0; j < count; ++j) {
          draw_key(j < known ? key_places[key + j] : 0, rows + j * kQueryBlock);
        }
      }
    }
  }

 private:
  [[gnu::always_inline]] RandomBlock bits_of(std::int64_t query, std::uint32_t block) const {
    return philox<kDropoutRounds>(
        problem.dropout_key, {counters[0][query], counters[1][query], counters[2][query], block});
  }

  // Whether `count` places follow each other from a multiple of 32, as where keys are cut into
  // chunks: their bits are then drawn together.
  static bool is_aligned_run(const std::int32_t* from, std::int64_t count) {
    bool run = count > 0 && from[0] % kKeyAlignment == 0;
    for (std::int64_t j = 1; run && j < count; ++j) {
      run = from[j] == from[0] + j;
    }
    return run;
  }

  // Keys at `count` <= 32 places from `first`, a multiple of 32. One random block serves keys
  // 2b, 2b+1, 2b+8, 2b+9, ... (see counter.h).
  template <class Real>
  void draw_run(std::int64_t first, std::int64_t count, Real* to) const {
    std::array<std::array<std::uint32_t, kQueryBlock>, 4> words;
    const auto kept = static_cast<Real>(dropout_scale(problem.dropout_threshold));
    for (std::uint32_t b = 0; b < 4; ++b) {
      const auto block = static_cast<std::uint32_t>(first / kKeyAlignment) * 4 + b;
      for (std::int64_t i = 0; i < kQueryBlock; ++i) {
        const RandomBlock bits = bits_of(i, block);
        for (int word = 0; word < 4; ++word) {
          words[word][i] = bits[word];
        }
      }
      for (int lane = 0; lane < 8; ++lane) {
        const std::int64_t key = lane / 2 * 8 + b * 2 + lane % 2;
        if (key >= count) {
          break;
        }
        for (std::int64_t i = 0; i < kQueryBlock; ++i) {
          const std::uint32_t bits = (words[lane / 2][i] >> (16 * (lane % 2))) & 0xFFFFu;
          to[key * kQueryBlock + i] = bits >= problem.dropout_threshold ? kept : Real(0);
        }
      }
    }
  }

  template <class Real>
  void draw_key(std::int32_t place, Real* to) const {
    const auto kept = static_cast<Real>(dropout_scale(problem.dropout_threshold));
    const auto key = static_cast<std::uint32_t>(place);
    for (std::int64_t i = 0; i < kQueryBlock; ++i) {
      const RandomBlock bits = bits_of(i, attention_dropout_block(key));
      to[i] = dropout_keeps(bits, attention_dropout_lane(key), problem.dropout_threshold) ? kept
                                                                                          : Real(0);
    }
  }
};

// How the (head, block of queries) pairs of one sequence and group are dealt out to tasks: by shape
// alone, in equal runs.
struct Split {
  std::int64_t blocks_per_head, num_items, num_splits;

  Split(const AttentionProblem& p, std::int64_t wanted_tasks, std::int64_t least_items)
      : blocks_per_head((p.query_length + kQueryBlock - 1) / kQueryBlock),
        num_items(p.heads_per_group() * blocks_per_head) {
    const std::int64_t groups = std::max<std::int64_t>(1, p.num_sequences * p.num_groups);
    num_splits = std::clamp<std::int64_t>((wanted_tasks + groups - 1) / groups, 1,
                                          std::max<std::int64_t>(1, num_items / least_items));
  }
  std::int64_t begin(std::int64_t split) const { return num_items * split / num_splits; }
};

// Rows of head `head` from token `token` on.
template <class T>
Rows<T> rows_of(const HeadView& view, const AttentionProblem& p, std::int64_t token,
                std::int64_t head, std::int64_t count) {
  return {head_at<T>(view, p, token, head), view.token_stride, count};
}

// The keys and values of a group, packed as far as blocks have needed them. Where queries see
// earlier keys only, each block needs a little more, which was prefetched during the one before.
template <class Products>
class GroupKeys {
 public:
  GroupKeys(Products& products, const AttentionProblem& p, const HeadView& k, const HeadView& v,
            std::int64_t sequence, std::int64_t group, Use use_of_keys, Use use_of_values)
      : keys(products.take_keys(p.key_length, use_of_keys)),
        values(products.take_keys(p.key_length, use_of_values)),
        products_(products),
        problem_(p),
        k_(k),
        v_(v),
        token_(sequence * p.key_length),
        head_(group * p.heads_per_group()) {}

  // Keys [0, end) from here on.
  void pack_until(std::int64_t end) {
    for (; packed_ < end; packed_ += kKeyTile) {
      products_.pack_keys(next_rows(k_), packed_, keys);
      products_.pack_keys(next_rows(v_), packed_, values);
    }
  }
  void prefetch_next() const {
    if (packed_ < problem_.key_length) {
      prefetch_rows(next_rows(k_), problem_.head_dim);
      prefetch_rows(next_rows(v_), problem_.head_dim);
    }
  }

  const typename Products::Keys keys, values;

 private:
  // The tile after those that are packed, which must not be all.
  auto next_rows(const HeadView& view) const {
    return rows_of<typename Products::Element>(view, problem_, token_ + packed_, head_,
                                               std::min(kKeyTile, problem_.key_length - packed_));
  }

  Products& products_;
  const AttentionProblem& problem_;
  const HeadView &k_, &v_;
  const std::int64_t token_, head_;
  std::int64_t packed_ = 0;
};

// Calls prefetch(first token, rows) for the block of queries after the one at `query`, if its head
// has one: what it will need is prefetched while this one is computed.
template <class Prefetch>
void with_next_block(const AttentionProblem& p, std::int64_t sequence, std::int64_t query,
                     const Prefetch& prefetch) {
  const std::int64_t next = query + kQueryBlock;
  if (next < p.query_length) {
    prefetch(sequence * p.query_length + next, std::min(kQueryBlock, p.query_length - next));
  }
}

// Calls body(tag) with the products for the dtype: decltype(tag)::type.
template <class Body>
void dispatch_products(const AttentionProblem& p, AttentionTiles tiles, const Body& body) {
  dispatch_floating(p.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (std::is_same_v<T, bfloat16> && use_tiles(tiles)) {
      body(TypeTag<TileProducts>{});
    } else {
      body(TypeTag<VectorProducts<T>>{});
    }
  });
}

}  // namespace
}  // namespace bloomery
