// The matrix products of bf16 attention on tile registers (AMX): the members of VectorProducts,
// with weights rounded to bf16 and sums in fp32. All extents are padded with zeros to multiples of
// 32, so that every tile is whole. For *_cpu.cpp files only.
//
// Scores are [key, query]. As the left operand (sums over queries) that is what tiles hold; as the
// right one (sums over keys) it becomes pairs of rows lane by lane. The sums over keys are kept
// transposed, [channel, query], for the same reason: nothing in the inner loops moves across lanes.
#pragma once

#include "ops/attention/attention_settings.h"
#include "ops/attention/attention_vector_products_cpu.h"
#include "ops/attention/tile_rounding.h"
#include "ops/matmul/amx.h"
#include "ops/matmul/amx_guard.h"

namespace bloomery {
namespace {

// Whether bf16 attention shall run on TileProducts.
bool use_tiles(AttentionTiles tiles) {
  check(tiles != AttentionTiles::hardware || amx_usable(),
        "attention: tile registers were asked for, which this processor does not have");
  return tiles == AttentionTiles::automatic ? amx_usable() : tiles != AttentionTiles::vectors;
}

class TileProducts {
  static constexpr std::int64_t kStep = amx::kDepth;       // inner positions of a step
  static constexpr std::int64_t kStrip = 2 * amx::kRows;   // rows or columns of a product
  static constexpr std::int64_t kPacked = kStrip * kStep;  // elements of a strip per step
  static_assert(kStrip == 32 && kStep == 32 && kQueryBlock % 32 == 0);

 public:
  using Element = bfloat16;
  using Real = float;

  static std::int64_t padded_head(const AttentionProblem& problem) {
    return round_up(problem.head_dim, 32);
  }
  static std::int64_t padded_keys(std::int64_t count) { return round_up(count, 32); }
  static std::int64_t padded_queries(std::int64_t count) { return round_up(count, 32); }

  // The calling thread's tile registers are in use as long as the object lives.
  TileProducts(const AttentionProblem& problem, Scratch& scratch, AttentionTiles tiles)
      : head_dim_(problem.head_dim),
        padded_(padded_head(problem)),
        hardware_(tiles != AttentionTiles::emulated),
        in_use_(hardware_),
        scratch_(scratch),
        rounded_(scratch.take<bfloat16>(kKeyTile * kQueryBlock)) {}

  struct Keys {
    bfloat16* rows;     // [padded keys][padded head]
    bfloat16* columns;  // transposed: strips of channels, in them steps of keys
    std::int64_t num_steps;
  };
  Keys take_keys(std::int64_t count, Use use) {
    const std::int64_t elements = padded_keys(count) * padded_;
    return {scratch_.take<bfloat16>(elements),
            use == Use::scores ? nullptr : scratch_.take<bfloat16>(elements),
            padded_keys(count) / kStep};
  }
  void pack_keys(const Rows<bfloat16>& from, std::int64_t first, const Keys& to) const {
    pack_padded(from, to.rows + first * padded_);
    for (std::int64_t channel = 0; to.columns != nullptr && channel < padded_; channel += kStrip) {
      bfloat16* tile = to.columns + (channel / kStrip * to.num_steps + first / kStep) * kPacked;
      for (std::int64_t key = first; key < first + padded_keys(from.count); key += kStep) {
        for (std::int64_t half = 0; half < kStrip; half += amx::kRows, tile += amx::kTile) {
          amx::pack_columns({to.rows + key * padded_ + channel + half, padded_, kStep, amx::kRows},
                            hardware_, tile);
        }
      }
    }
  }

  class Queries {
   public:
    Queries(TileProducts& products, Use use)
        : rows(products.scratch_.take<bfloat16>(kQueryBlock * products.padded_)),
          transposed(products.scratch_.take<bfloat16>(kQueryBlock * products.padded_)),
          pairs(use == Use::scores
                    ? nullptr
                    : products.scratch_.take<bfloat16>(kQueryBlock * products.padded_)) {}
    bfloat16* const rows;
    bfloat16* const transposed;  // strips of queries, in them steps of channels
    bfloat16* const pairs;       // strips of channels, in them steps of queries
  };
  void pack_queries(const Rows<bfloat16>& from, const Queries& to) const {
    const std::int64_t count = padded_queries(from.count);
    pack_padded(from, to.rows);
    bfloat16* tile = to.transposed;
    for (std::int64_t query = 0; query < count; query += kStrip) {
      for (std::int64_t channel = 0; channel < padded_; channel += kStep) {
        for (std::int64_t half = 0; half < kStrip; half += amx::kRows, tile += amx::kTile) {
          amx::pack_pairs_transposed(
              {to.rows + (query + half) * padded_ + channel, padded_, amx::kRows, kStep}, hardware_,
              tile);
        }
      }
    }
    tile = to.pairs;
    for (std::int64_t channel = 0; tile != nullptr && channel < padded_; channel += kStrip) {
      for (std::int64_t query = 0; query < count; query += kStep) {
        for (std::int64_t half = 0; half < kStrip; half += amx::kRows, tile += amx::kTile) {
          amx::pack_pairs({to.rows + query * padded_ + channel + half, padded_, kStep, amx::kRows},
                          hardware_, tile);
        }
      }
    }
  }

  void scores(const Keys& keys, std::int64_t first, std::int64_t num_keys, const Queries& queries,
              std::int64_t num_queries, float* scores) const {
    const std::int64_t steps = padded_ / kStep;
    for (std::int64_t key = 0; key < num_keys; key += kStrip) {
      const amx::RowTiles a{keys.rows + (first + key) * padded_, padded_, amx::kRows * padded_,
                            kStep};
      multiply(a, queries.transposed, steps, num_queries, false, scores + key * kQueryBlock,
               kQueryBlock);
    }
  }

  void add_over_queries(const float* weights, std::int64_t num_keys, const Queries& queries,
                        std::int64_t num_queries, float* sums) const {
    amx::round_rows(weights, kQueryBlock, padded_keys(num_keys), padded_queries(num_queries),
                    hardware_, rounded_);
    const std::int64_t steps = padded_queries(num_queries) / kStep;
    for (std::int64_t key = 0; key < num_keys; key += kStrip) {
      const amx::RowTiles a{rounded_ + key * kQueryBlock, kQueryBlock, amx::kRows * kQueryBlock,
                            kStep};
      multiply(a, queries.pairs, steps, padded_, true, sums + key * padded_, padded_);
    }
  }

  class QuerySums {
   public:
    explicit QuerySums(TileProducts& products)
        : products_(products),
          sums_(products.scratch_.take<float>(kQueryBlock * products.padded_)),
          rows_(products.scratch_.take<float>(kQueryBlock * products.padded_)) {}

    void start(std::int64_t num_queries) {
      columns_ = padded_queries(num_queries);
      empty_ = true;
    }
    void rescale(const float* factors) {
      for (std::int64_t c = 0; !empty_ && c < products_.padded_; ++c) {
        for (std::int64_t i = 0; i < columns_; ++i) {
          sums_[c * kQueryBlock + i] *= factors[i];
        }
      }
    }
    void add(const float* weights, const Keys& keys, std::int64_t first, std::int64_t num_keys) {
      const TileProducts& p = products_;
      amx::round_pairs(weights, kQueryBlock, padded_keys(num_keys), columns_, p.hardware_,
                       p.rounded_);
      const std::int64_t steps = padded_keys(num_keys) / kStep;
      for (std::int64_t channel = 0; channel < p.padded_; channel += kStrip) {
        const bfloat16* a =
            keys.columns + (channel / kStrip * keys.num_steps + first / kStep) * kPacked;
        p.multiply({a, kStep, amx::kTile, kPacked}, p.rounded_, steps, columns_, !empty_,
                   sums_ + channel * kQueryBlock, kQueryBlock);
      }
      empty_ = false;
    }
    const float* finish() {
      if (empty_) {
        std::fill_n(rows_, columns_ * products_.padded_, 0.0f);
      } else {
        transpose(sums_, kQueryBlock, products_.padded_, columns_, rows_, products_.padded_);
      }
      return rows_;
    }

   private:
    const TileProducts& products_;
    float *const sums_, *const rows_;  // [padded head][kQueryBlock] and its transpose
    std::int64_t columns_ = 0;
    bool empty_ = true;
  };

 private:
  // Rows [padded count][padded_], zeros beyond the count and the head.
  void pack_padded(const Rows<bfloat16>& from, bfloat16* to) const {
    pack_rows(from, head_dim_, padded_, to);
    std::fill(to + from.count * padded_, to + round_up(from.count, 32) * padded_, bfloat16{});
  }

  // c [kStrip][columns] (+)= a times the strips of b, which are `num_steps` steps long.
  void multiply(const amx::RowTiles& a, const bfloat16* b, std::int64_t num_steps,
                std::int64_t columns, bool add, float* c, std::int64_t ldc) const {
    for (std::int64_t column = 0; column < columns; column += kStrip, b += num_steps * kPacked) {
      (hardware_ ? amx::multiply_hardware : amx::multiply_emulated)(a, b, num_steps, add,
                                                                    c + column, ldc, {});
    }
  }

  const std::int64_t head_dim_, padded_;
  const bool hardware_;
  const amx::TilesInUse in_use_;
  Scratch& scratch_;
  bfloat16* const rounded_;  // weights of one product
};

}  // namespace
}  // namespace bloomery
