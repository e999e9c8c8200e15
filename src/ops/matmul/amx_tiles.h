// Tiles of 16 rows of 64 bytes, and how operands become tiles. A tile of a holds 16 rows and 32
// inner positions; a tile of b 16 pairs of inner positions for 16 columns. Every function exists
// with vector or tile instructions and without.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace bloomery::amx {

inline constexpr std::int64_t kRows = 16, kDepth = 32, kTile = kRows * kDepth;

// Of two rows of 16 one after the other: their numbers in turns, as a row of b's tiles has them.
alignas(64) inline constexpr std::uint16_t kPairOrder[kDepth] = {
    0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

// A tile's part of a stored matrix: element (row, column) at data[row * ld + column]; beyond rows
// and columns the tile is zero.
struct Part {
  const bfloat16* data;
  std::int64_t ld, rows, columns;
};

// to[r][c] = from(r, c): a's rows as they stand; rows <= 16, columns <= 32.
void pack_rows(const Part& from, bool vectors, bfloat16* to);
// to[r][c] = from(c, r): a stored [k, m]; rows (k) <= 32, columns (m) <= 16.
void pack_columns(const Part& from, bool vectors, bfloat16* to);
// to[r][c][e] = from(2r + e, c): b stored [k, n]; rows (k) <= 32, columns (n) <= 16.
void pack_pairs(const Part& from, bool vectors, bfloat16* to);
// to[r][c][e] = from(c, 2r + e): b stored [n, k]; rows (n) <= 16, columns (k) <= 32.
void pack_pairs_transposed(const Part& from, bool vectors, bfloat16* to);

// Two tiles of a's rows, step by step along the inner extent.
struct RowTiles {
  const bfloat16* data;
  std::int64_t stride;  // elements from row to row
  std::int64_t second;  // elements to the lower 16 rows
  std::int64_t step;    // elements to the next 32 inner positions
};

// Around calls of multiply_hardware on one thread.
void configure_tiles();
void release_tiles();

// Cache lines of rows of a matrix, row by row.
struct Lines {
  const char* row = nullptr;
  std::int64_t rows = 0;               // left, with the current one
  std::int64_t bytes = 0, stride = 0;  // of a row; from row to row
  std::int64_t taken = 0;              // bytes of the current row

  // Calls use(address) for the next lines, `count` of them or as many as are left.
  template <class Use>
  void take(std::int64_t count, const Use& use) {
    for (; count > 0 && rows > 0; --count) {
      use(row + taken);
      taken += 64;
      if (taken >= bytes) {
        row += stride;
        taken = 0;
        --rows;
      }
    }
  }
};

// What will be used after a call and the caches may not hold yet, to be prefetched beside the
// products, which leave time for it: c of the next call, with the same ldc; its tiles of b, for as
// many steps; lines that will be written or read once, so many of each at every step.
struct Next {
  const float* c = nullptr;
  const bfloat16* b = nullptr;
  std::span<Lines> lines = {};
  std::int64_t lines_a_step = 0;
};

// c [32, 32] (+)= the product over num_steps steps, at least one; b's tiles come in pairs, left and
// right.
void multiply_hardware(const RowTiles& a, const bfloat16* b, std::int64_t num_steps, bool add,
                       float* c, std::int64_t ldc, const Next& next = {});
void multiply_emulated(const RowTiles& a, const bfloat16* b, std::int64_t num_steps, bool add,
                       float* c, std::int64_t ldc, const Next& next = {});

}  // namespace bloomery::amx
