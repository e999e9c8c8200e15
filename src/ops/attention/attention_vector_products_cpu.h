// The matrix products of attention in fp32 vectors (fp64 for the oracle): every dtype, every
// processor. attention_tile_products_cpu.h offers the same members. For *_cpu.cpp files only.
#pragma once

#include "ops/attention/attention_pack_cpu.h"
#include "ops/common/tile_product_cpu.h"

namespace bloomery {
namespace {

// What an operand is packed for: scores [key, query] over channels, sums over keys or over queries.
enum class Use { scores, sums, both };

template <class T>
class VectorProducts {
 public:
  using Element = T;
  using Real = Accumulator<T>;

  // Extents that arrays must have room for: channels of a packed head, keys and queries that a
  // product covers when asked for `count`.
  static std::int64_t padded_head(const AttentionProblem& problem) {
    return round_up(problem.head_dim, std::max(4, kLanes<Real>));  // four for transposing
  }
  static std::int64_t padded_keys(std::int64_t count) { return count; }
  static std::int64_t padded_queries(std::int64_t count) { return round_up(count, kLanes<Real>); }

  VectorProducts(const AttentionProblem& problem, Scratch& scratch, AttentionTiles)
      : head_dim_(problem.head_dim), padded_(padded_head(problem)), scratch_(scratch) {}

  struct Keys {
    Real* rows;
  };
  Keys take_keys(std::int64_t count, Use) { return {scratch_.take<Real>(count * padded_)}; }
  // Keys from `first` on, a multiple of kKeyTile.
  void pack_keys(const Rows<T>& from, std::int64_t first, const Keys& to) const {
    pack_rows(from, head_dim_, padded_, to.rows + first * padded_);
  }

  // A block of at most kQueryBlock rows of Q or dO.
  class Queries {
   public:
    Queries(VectorProducts& products, Use)
        : rows(products.scratch_.template take<Real>(kQueryBlock * products.padded_)),
          transposed(products.scratch_.template take<Real>(kQueryBlock * products.padded_)) {}
    Real *const rows, *const transposed;
  };
  void pack_queries(const Rows<T>& from, const Queries& to) {
    pack_rows(from, head_dim_, padded_, to.rows);
    const std::int64_t columns = round_up(from.count, std::max(4, kLanes<Real>));
    std::fill(to.rows + from.count * padded_, to.rows + columns * padded_, Real(0));
    transpose(to.rows, padded_, columns, padded_, to.transposed, kQueryBlock);
  }

  // scores [keys][kQueryBlock] = keys from `first`, times queries.
  void scores(const Keys& keys, std::int64_t first, std::int64_t num_keys, const Queries& queries,
              std::int64_t num_queries, Real* scores) const {
    tile_product(Broadcast<Real>{keys.rows + first * padded_, padded_, 1}, queries.transposed,
                 kQueryBlock, scores, kQueryBlock, num_keys, padded_queries(num_queries), head_dim_,
                 false);
  }

  // sums [keys][padded_head] += weights [keys][kQueryBlock] times queries.
  void add_over_queries(const Real* weights, std::int64_t num_keys, const Queries& queries,
                        std::int64_t num_queries, Real* sums) const {
    tile_product(Broadcast<Real>{weights, kQueryBlock, 1}, queries.rows, padded_, sums, padded_,
                 num_keys, padded_, num_queries, true);
  }

  // For a block of queries: sums over keys of weights [key][kQueryBlock] times the keys' rows.
  class QuerySums {
   public:
    explicit QuerySums(VectorProducts& products)
        : products_(products),
          sums_(products.scratch_.template take<Real>(kQueryBlock * products.padded_)) {}

    void start(std::int64_t num_queries) {
      num_queries_ = num_queries;
      std::fill_n(sums_, num_queries * products_.padded_, Real(0));
    }
    // Multiplies what was added so far by one factor per query.
    void rescale(const Real* factors) {
      const std::int64_t padded = products_.padded_;
      for (std::int64_t i = 0; i < num_queries_; ++i) {
        for (std::int64_t c = 0; c < padded; ++c) {
          sums_[i * padded + c] *= factors[i];
        }
      }
    }
    void add(const Real* weights, const Keys& keys, std::int64_t first, std::int64_t num_keys) {
      const std::int64_t padded = products_.padded_;
      tile_product(Broadcast<Real>{weights, 1, kQueryBlock}, keys.rows + first * padded, padded,
                   sums_, padded, num_queries_, padded, num_keys, true);
    }
    // [queries][padded_head]
    const Real* finish() { return sums_; }

   private:
    const VectorProducts& products_;
    Real* const sums_;
    std::int64_t num_queries_ = 0;
  };

 private:
  const std::int64_t head_dim_, padded_;
  Scratch& scratch_;
};

}  // namespace
}  // namespace bloomery
