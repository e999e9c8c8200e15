// The innermost loop of our own products: a strip of rows of a times a strip of columns of b, both
// packed, with all sums in registers. For *_cpu.cpp files only.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "ops/common/simd.h"

namespace bloomery {
namespace {

// Sums that fill the registers of the level: rows x kStripVectors vectors, with two vectors of b
// and a broadcast element of a beside them.
constexpr int kStripVectors = 2;
#if defined(__AVX512F__)
constexpr int kStripRows = 14;
#elif defined(__AVX2__)
constexpr int kStripRows = 6;
#elif defined(__aarch64__)
constexpr int kStripRows = 12;
#else
constexpr int kStripRows = 4;
#endif
template <class Real>
constexpr int kStripColumns = kStripVectors* kLanes<Real>;

// Inner extent of a panel: a strip of rows stays in the first level of cache while all strips of
// columns pass.
constexpr int kPanelDepth = 384;

// Where element (row, k) of a packed strip of rows is: strips keep the order in which a is stored,
// so that packing copies runs.
template <class Real>
struct StoredByRows {
  static constexpr int kRowStep = kPanelDepth + 64 / sizeof(Real),
                       kDepthStep = 1;  // spreads rows over cache sets
};
template <class Real>
struct StoredByDepth {
  static constexpr int kRowStep = 1;
  static constexpr int kDepthStep = static_cast<int>(round_up(kStripRows, kLanes<Real>));
};

// Lines that the next strip of rows will be packed from. The kernel asks for two of them in every
// kGroup steps, `step` bytes after the last two and `other` bytes apart.
struct Ahead {
  const char* first;
  std::int64_t step, other;
  static constexpr int kGroup = 16;
};

// c [kRows, kStripColumns] (+)= a b; a packed as Order says, b [depth, kStripColumns].
template <int kRows, class Order, class Real>
[[gnu::noinline]] void multiply_strips(const Real* a, const Real* b, std::int64_t depth, Real* c,
                                       std::int64_t ldc, bool add, Ahead ahead) {
  constexpr std::int64_t kFetched = 8;  // steps of b between its way to the first cache and its use
  Vector<Real> sums[kRows][kStripVectors];
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int v = 0; v < kStripVectors; ++v) {
      sums[row][v] = Vector<Real>{};
    }
  }
  const Real* const end = b + depth * kStripColumns<Real>;
  const char* row_of_c = reinterpret_cast<const char*>(c);
  const char* const last_row_of_c = row_of_c + (kRows - 1) * ldc * sizeof(Real);
  while (b != end) {
    // A little at a time: more would hold up the loads of b.
    __builtin_prefetch(row_of_c, 1);
    __builtin_prefetch(row_of_c + kVectorBytes, 1);
    row_of_c = row_of_c == last_row_of_c ? row_of_c : row_of_c + ldc * sizeof(Real);
    __builtin_prefetch(ahead.first, 0, 2);
    __builtin_prefetch(ahead.first + ahead.other, 0, 2);
    ahead.first += ahead.step;
    const Real* const group = std::min(end, b + Ahead::kGroup * kStripColumns<Real>);
    do {
      Vector<Real> lanes[kStripVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kStripVectors; ++v) {
        lanes[v] = load_vector(b + v * kLanes<Real>);
        __builtin_prefetch(b + kFetched * kStripColumns<Real> + v * kLanes<Real>);
      }
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row) {
        const Real factor = a[row * Order::kRowStep];
#pragma GCC unroll 2
        for (int v = 0; v < kStripVectors; ++v) {
          sums[row][v] += factor * lanes[v];
        }
      }
      a += Order::kDepthStep;
      b += kStripColumns<Real>;
    } while (b != group);
  }
  const auto store_all = [&](auto adds) {
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (int v = 0; v < kStripVectors; ++v) {
        Real* const to = c + row * ldc + v * kLanes<Real>;
        store_vector(to, adds ? load_vector(to) + sums[row][v] : sums[row][v]);
      }
    }
  };
  add ? store_all(std::true_type{}) : store_all(std::false_type{});
}

template <class Real>
using StripKernel = void (*)(const Real*, const Real*, std::int64_t, Real*, std::int64_t, bool,
                             Ahead);

// The kernel for a strip of 1 to kStripRows rows.
template <class Order, class Real>
StripKernel<Real> strip_kernel(std::int64_t rows) {
  static constexpr auto kKernels = []<int... kBelow>(std::integer_sequence<int, kBelow...>) {
    return std::array<StripKernel<Real>, kStripRows>{multiply_strips<kBelow + 1, Order, Real>...};
  }
  (std::make_integer_sequence<int, kStripRows>{});
  return kKernels[static_cast<std::size_t>(rows - 1)];
}

}  // namespace
}  // namespace bloomery
