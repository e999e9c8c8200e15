#include "ops/matmul/amx_operand.h"

#include <algorithm>
#include <array>

#include "base/prefetch.h"

namespace bloomery {
namespace {

using amx::kDepth;
using amx::kRows;
using amx::kTile;
constexpr std::int64_t kSide = amx::kSquare;  // of a strip and of a step
static_assert(kSide == 2 * kRows && kSide == kDepth);

// Calls pack(square, plane's tiles) for every plane of the square of a stored matrix that starts at
// `data`: at most 32 rows and columns of it, in bf16.
template <class In, class Pack>
void for_planes(const In* data, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                bool vectors, bfloat16* to, const Pack& pack) {
  if constexpr (std::is_same_v<In, bfloat16>) {
    pack(amx::Part{data, ld, rows, columns}, to);
  } else {
    std::array<bfloat16, amx::kPlanes * amx::kSquare * amx::kSquare> planes;
    amx::split(data, ld, rows, columns, vectors, planes.data());
    for (std::int64_t p = 0; p < amx::kPlanes; ++p) {
      pack(amx::Part{planes.data() + p * amx::kSquare * amx::kSquare, amx::kSquare, rows, columns},
           to + p * 2 * kTile);
    }
  }
}

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

template <class In>
AmxOperand<In>::AmxOperand(Side side, const Stored& stored, std::int64_t extent, std::int64_t inner,
                           bool hardware)
    : stored_(stored),
      extent_(extent),
      inner_(inner),
      hardware_(hardware),
      rows_are_inner_(stored.transposed == (side == Side::a)),
      pack_tile_(side == Side::a
                     ? (rows_are_inner_ ? amx::pack_columns : amx::pack_rows)
                     : (rows_are_inner_ ? amx::pack_pairs : amx::pack_pairs_transposed)) {}

template <class In>
void AmxOperand<In>::pack(std::int64_t strip, std::int64_t step, bfloat16* to) const {
  const std::int64_t k = step * kDepth, depth = std::min(inner_ - k, kDepth);
  const std::int64_t first = strip * kStrip, count = std::min(extent_ - first, kStrip);
  if constexpr (std::is_same_v<In, float>) {
    if (pack_tile_ == amx::pack_rows && depth == kSide && count == kSide) {
      static_assert(2 * kTile == kSide * kSide);  // tiles of whole rows lie as planes do
      return amx::split(stored_.data + first * stored_.ld + k, stored_.ld, kSide, kSide, hardware_,
                        to);
    }
  }
  if (rows_are_inner_) {
    for_planes(stored_.data + k * stored_.ld + first, stored_.ld, depth, count, hardware_, to,
               [&](const amx::Part& square, bfloat16* tiles) {
                 pack_tile_(half_columns(square, 0), hardware_, tiles);
                 pack_tile_(half_columns(square, 1), hardware_, tiles + kTile);
               });
  } else {
    for_planes(stored_.data + first * stored_.ld + k, stored_.ld, count, depth, hardware_, to,
               [&](const amx::Part& square, bfloat16* tiles) {
                 pack_tile_(half_rows(square, 0), hardware_, tiles);
                 pack_tile_(half_rows(square, 1), hardware_, tiles + kTile);
               });
  }
}

// Follows the rows in which the operand is stored, a few squares behind those that are fetched.
template <class In>
void AmxOperand<In>::pack(const Region& region, const Loop& loop, bfloat16* to,
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
      fetch_square(first_row + next / across * kSide, first_column + next % across * kSide);
      const std::int64_t strip = rows_are_inner_ ? j : i, step = rows_are_inner_ ? i : j;
      pack(region.first_strip + strip, region.first_step + step,
           to + strip * stride + step * kStepSize);
    }
  });
}

template <class In>
void AmxOperand<In>::fetch_square(std::int64_t row, std::int64_t column) const {
  const std::int64_t end = std::min(row + kSide, rows_are_inner_ ? inner_ : extent_);
  for (; row < end; ++row) {
    fetch(row, column, column + kSide);
  }
}

// Hardware continues a row by itself only where lines follow each other: tiles cross rows that lie
// far apart.
template <class In>
void AmxOperand<In>::fetch(std::int64_t row, std::int64_t begin, std::int64_t end) const {
  constexpr std::int64_t kLine = 64 / sizeof(In);
  const In* const data = stored_.data + row * stored_.ld;
  const std::int64_t last = std::min(end, rows_are_inner_ ? extent_ : inner_);
  for (std::int64_t i = begin; i < last; i += kLine) {
    prefetch_to_second(data + i);
  }
}

template class AmxOperand<bfloat16>;
template class AmxOperand<float>;

}  // namespace bloomery
