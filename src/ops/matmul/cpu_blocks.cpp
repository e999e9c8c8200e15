#include "ops/matmul/cpu_blocks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ops/matmul/amx.h"

namespace bloomery {
namespace {

// Relative time of a product cut into blocks, averaged over pools of 2 to 16 threads. Blocks cost
// what their library call copies (proportional to rows + columns where the product is to
// rows * columns) and a fixed start; threads idle in the last round.
double block_cost(const MatmulKey& key, double speed, std::int64_t rows, std::int64_t columns) {
  constexpr double kCopyCost = 4, kStartOperations = 1e6;
  const double copy = kCopyCost * speed;
  const double start =
      kStartOperations * speed / (2.0 * static_cast<double>(rows * columns * key.k));
  const double overhead =
      1 + copy / static_cast<double>(rows) + copy / static_cast<double>(columns) + start;
  const std::int64_t count = ((key.m + rows - 1) / rows) * ((key.n + columns - 1) / columns);
  const double wasted = static_cast<double>(count * rows * columns) /
                        static_cast<double>(key.m * key.n);  // by smaller blocks at the edges
  double rounds = 0;
  for (const std::int64_t threads : {2, 3, 4, 6, 8, 12, 16}) {
    const std::int64_t slots = (count + threads - 1) / threads * threads;
    rounds += static_cast<double>(slots) / static_cast<double>(count);
  }
  return overhead * wasted * rounds;
}

// Blocks on the tile registers change no bit of the result, so they may depend on the number of
// threads: several for each, since neighbours slow down some cores and not others and a part of a
// block is lost at the end. Costs are in products per element, as measured on GPT shapes: to pack
// one for a block, to pack one for all blocks, to copy one of a row of a, to read one from where
// all blocks share it, to visit one of c once more. A panel of b that takes more than its share of
// L2 costs in proportion.
double amx_cost(const MatmulKey& key, std::int64_t threads, std::int64_t rows,
                std::int64_t columns) {
  constexpr double kPack = 60, kShare = 150, kCopy = 60, kRead = 15, kVisit = 20, kLost = 0.2;
  constexpr double kCrowding = 0.1, kFits = 600 * 1024;
  const auto parts = [](std::int64_t extent, std::int64_t part) {
    return (extent + part - 1) / part;
  };
  // For one operand: `reuse` is how often a block uses an element of it, `whole` how often all do.
  const auto packing = [](double reuse, double whole) {
    const bool shared = whole > static_cast<double>(AmxProduct::kOwnCopies) * reuse;
    return shared ? kShare / whole + kRead / reuse : kPack / reuse;
  };
  const auto m = static_cast<double>(key.m), n = static_cast<double>(key.n);
  const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
  const double copies = packing(r, m) + (key.transpose_a ? packing(c, n) : kCopy / c);
  const std::int64_t depth = AmxProduct::panel_depth(columns, key.k);
  const auto d = static_cast<double>(depth);
  const double visits = depth < key.k ? kVisit / d : 0;
  const double crowding = kCrowding * std::max(0.0, 2 * c * d / kFits - 1);
  const std::int64_t count = parts(key.m, rows) * parts(key.n, columns);
  const auto slots = static_cast<double>(parts(count, threads) * threads * rows * columns);
  const double balance = 1 + kLost * static_cast<double>(threads) / static_cast<double>(count);
  return (1 + copies + visits + crowding) * slots * balance;
}

// The blocks of least cost among the given extents, cut off where the product ends.
template <class Extents, class Cost>
BlockSizes cheapest(const MatmulKey& key, const Extents& rows, const Extents& columns,
                    const Cost& cost) {
  BlockSizes best{key.m, key.n};
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t row_limit : rows) {
    for (const std::int64_t column_limit : columns) {
      const BlockSizes cut{std::min(row_limit, key.m), std::min(column_limit, key.n)};
      if (const double here = cost(cut.first, cut.second); here < least) {
        least = here;
        best = cut;
      }
    }
  }
  return best;
}

}  // namespace

BlockSizes onednn_blocks(const MatmulKey& key) {
  // How many times as fast as in fp32 products run, by order of magnitude.
  const double speed = key.input != DType::bf16 ? 1 : amx_usable() ? 10 : 2;
  constexpr std::array<std::int64_t, 10> kExtents{64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048};
  const auto cost = [&](std::int64_t rows, std::int64_t columns) {
    return block_cost(key, speed, rows, columns);
  };
  const BlockSizes cut = cheapest(key, kExtents, kExtents, cost);
  return cost(key.m, key.n) <= cost(cut.first, cut.second) ? BlockSizes{key.m, key.n} : cut;
}

// Our own kernels share what they pack, so that blocks may be small in rows: four strips of the
// kernel, in a number that most pools divide among themselves evenly. The columns of a block stay
// in L2. Where there are few rows, columns are divided instead.
BlockSizes own_blocks(const MatmulKey& key) {
  constexpr std::int64_t kRows = 56, kColumns = 768, kStrip = 32, kEven = 4, kEnough = 8;
  const auto parts = [](std::int64_t extent, std::int64_t part) {
    return (extent + part - 1) / part;
  };
  std::int64_t row_blocks = parts(key.m, kRows), column_blocks = parts(key.n, kColumns);
  if (key.m <= 2 * kRows) {
    column_blocks = std::max(kEnough, column_blocks);
  } else {
    row_blocks = parts(row_blocks, kEven) * kEven;
    if (row_blocks * column_blocks < kEnough) {
      (key.m >= row_blocks * kRows * 7 / 8 ? row_blocks : column_blocks) *= 2;
    }
  }
  return {parts(key.m, row_blocks), parts(parts(key.n, column_blocks), kStrip) * kStrip};
}

BlockSizes amx_blocks(const MatmulKey& key, std::int64_t threads) {
  constexpr std::array<std::int64_t, 8> kRows{96, 128, 192, 256, 384, 512, 768, 1024};
  constexpr std::array<std::int64_t, 8> kColumns{128, 192, 256, 384, 512, 768, 1024, 1536};
  return cheapest(key, kRows, kColumns, [&](std::int64_t rows, std::int64_t columns) {
    return amx_cost(key, threads, rows, columns);
  });
}

}  // namespace bloomery
