#include "ops/matmul/amx_operand.h"

#include <algorithm>

#include "base/prefetch.h"

namespace bloomery {
namespace {

using amx::kDepth;
using amx::kRows;
using amx::kTile;
constexpr std::int64_t kSide = AmxOperand::kStrip;  // of a strip and of a step
static_assert(kSide == 2 * kRows && kSide == kDepth);

// The part of a square that becomes one of its two tiles, perhaps an empty one.
amx::Part half_rows(const amx::Part& square, std::int64_t half) {
  const std::int64_t first = std::min(half * kRows, square.rows);
  return {first < square.rows ? square.data + first * square.ld : square.data, square.ld,
          std::min(square.rows - first, kRows), square.columns};
}
amx::Part half_columns(const amx::Part& square, std::int64_t half) {
  const std::int64_t first = std::min(half * kRows, square.columns);
  return {square.data + first, square.ld, square.rows, std::min(square.columns - first, kRows)};
}

}  // namespace

AmxOperand::AmxOperand(Side side, const Stored& stored, std::int64_t extent, std::int64_t inner,
                       bool hardware)
    : stored_(stored),
      extent_(extent),
      inner_(inner),
      hardware_(hardware),
      rows_are_inner_(stored.transposed == (side == Side::a)),
      pack_tile_(side == Side::a
                     ? (rows_are_inner_ ? amx::pack_columns : amx::pack_rows)
                     : (rows_are_inner_ ? amx::pack_pairs : amx::pack_pairs_transposed)) {}

void AmxOperand::pack(std::int64_t strip, std::int64_t step, bfloat16* to) const {
  const std::int64_t k = step * kDepth, depth = std::min(inner_ - k, kDepth);
  const std::int64_t first = strip * kStrip, count = std::min(extent_ - first, kStrip);
  const bfloat16* const data =
      stored_.data + (rows_are_inner_ ? k * stored_.ld + first : first * stored_.ld + k);
  const amx::Part square = rows_are_inner_ ? amx::Part{data, stored_.ld, depth, count}
                                           : amx::Part{data, stored_.ld, count, depth};
  const auto half = rows_are_inner_ ? half_columns : half_rows;
  pack_tile_(half(square, 0), hardware_, to);
  pack_tile_(half(square, 1), hardware_, to + kTile);
}

// Follows the rows in which the operand is stored, a few squares behind those that are prefetched.
void AmxOperand::pack(const Region& region, const Loop& loop, bfloat16* to,
                      std::int64_t stride) const {
  constexpr std::int64_t kAhead = 8;
  const std::int64_t down = rows_are_inner_ ? region.steps : region.strips;
  const std::int64_t across = rows_are_inner_ ? region.strips : region.steps;
  const std::int64_t first_row = (rows_are_inner_ ? region.first_step : region.first_strip) * kSide;
  const std::int64_t first_column =
      (rows_are_inner_ ? region.first_strip : region.first_step) * kSide;
  loop(down, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < across; ++j) {
      const std::int64_t next = i * across + j + kAhead;
      prefetch_square(first_row + next / across * kSide, first_column + next % across * kSide);
      const std::int64_t strip = rows_are_inner_ ? j : i, step = rows_are_inner_ ? i : j;
      pack(region.first_strip + strip, region.first_step + step,
           to + strip * stride + step * kStepSize);
    }
  });
}

void AmxOperand::prefetch_square(std::int64_t row, std::int64_t column) const {
  const std::int64_t end = std::min(row + kSide, rows_are_inner_ ? inner_ : extent_);
  for (; row < end; ++row) {
    prefetch(row, column, column + kSide);
  }
}

// Hardware continues a row by itself only where lines follow each other: tiles cross rows that lie
// far apart.
void AmxOperand::prefetch(std::int64_t row, std::int64_t begin, std::int64_t end) const {
  constexpr std::int64_t kLine = 64 / sizeof(bfloat16);
  const bfloat16* const data = stored_.data + row * stored_.ld;
  const std::int64_t last = std::min(end, rows_are_inner_ ? extent_ : inner_);
  for (std::int64_t i = begin; i < last; i += kLine) {
    prefetch_to_l2(data + i);
  }
}

}  // namespace bloomery
