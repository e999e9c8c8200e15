// An operand of a product on the tiles: a stored matrix, and how strips of 32 of a's rows or of b's
// columns become tiles, step by step along the inner extent.
#pragma once

#include <cstdint>
#include <functional>

#include "ops/matmul/amx_tiles.h"

namespace bloomery {

class AmxOperand {
 public:
  static constexpr std::int64_t kStrip = 2 * amx::kRows;
  static constexpr std::int64_t kStepSize = kStrip * amx::kDepth;  // of a packed strip per step

  enum class Side { a, b };
  struct Stored {
    const bfloat16* data;
    std::int64_t ld;
    bool transposed;  // stored [k, m] for a, [n, k] for b
  };
  // extent: rows of a or columns of b; inner: k. Both at least 1.
  AmxOperand(Side side, const Stored& stored, std::int64_t extent, std::int64_t inner,
             bool hardware);

  bool transposed() const { return stored_.transposed; }

  void pack(std::int64_t strip, std::int64_t step, bfloat16* to) const;

  struct Region {
    std::int64_t first_strip, strips, first_step, steps;
  };
  // Calls its argument for each number below the first, in any order.
  using Loop = std::function<void(std::int64_t, const std::function<void(std::int64_t)>&)>;
  // Strip s of the region goes to to + s * stride.
  void pack(const Region& region, const Loop& loop, bfloat16* to, std::int64_t stride) const;

  // Prefetches columns [begin, end) of a row of the stored matrix to L2, as far as there are any.
  void prefetch(std::int64_t row, std::int64_t begin, std::int64_t end) const;

 private:
  using Pack = void (*)(const amx::Part&, bool, bfloat16*);

  void prefetch_square(std::int64_t row, std::int64_t column) const;

  const Stored stored_;
  const std::int64_t extent_, inner_;
  const bool hardware_;
  const bool rows_are_inner_;  // of the stored matrix
  const Pack pack_tile_;
};

}  // namespace bloomery
