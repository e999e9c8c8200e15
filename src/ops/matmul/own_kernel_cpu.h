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
// and, where it needs one, a broadcast element of a beside them.
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

// Inner extent of a panel: a strip of rows stays in L1 while all strips of columns pass, a block of
// columns in L2, of which a busy neighbour takes its half. No panel is deeper than kMostDepth.
constexpr int kPanelDepth = 256, kMostDepth = 384;

// A packed strip of rows of a keeps the elements of one k together: element (row, k) is at
// k * kDepthStep + row.
template <class Real>
constexpr int kDepthStep = static_cast<int>(round_up(kStripRows, kLanes<Real>));

// sum + factor * lanes. With AVX-512 the factor is read by the multiplication itself: fewer
// instructions, of which a core that another thread shares has half.
template <class Real>
[[gnu::always_inline]] inline Vector<Real> sum_with(Vector<Real> sum, const Real* factor,
                                                    Vector<Real> lanes) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<Real, float>) {
    asm("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(*factor), "v"(lanes));
    return sum;
  }
#endif
  return sum + *factor * lanes;
}

// What the caches may not hold yet, for the kernel to prefetch.
struct Ahead {
  static constexpr int kGroup = 16;
  // Lines that the next strip of rows will be packed from: two in every kGroup steps, `step` bytes
  // after the last two and `other` bytes apart.
  const char* first;
  std::int64_t step, other;
  // The place of c in a matrix of the same shape that will be used together with it, or c.
  const void* beside;
};

// One step: sums += a [kRows] times b [kStripColumns].
template <int kRows, class Real>
[[gnu::always_inline]] inline void add_step(const Real* a, const Real* b,
                                            Vector<Real> (&sums)[kRows][kStripVectors]) {
  Vector<Real> lanes[kStripVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kStripVectors; ++v) {
    lanes[v] = load_vector(b + v * kLanes<Real>);
  }
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int v = 0; v < kStripVectors; ++v) {
      sums[row][v] = sum_with(sums[row][v], a + row, lanes[v]);
    }
  }
}

// c [kRows, kStripColumns] (+)= a b; a packed, b [depth, kStripColumns]. With kPrefetch also
// prefetches the strip of b after this one, which another thread may have packed.
template <int kRows, class Real, bool kPrefetch>
[[gnu::noinline]] void multiply_strips(const Real* a, const Real* b, std::int64_t depth, Real* c,
                                       std::int64_t ldc, bool add, Ahead ahead) {
  Vector<Real> sums[kRows][kStripVectors];
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int v = 0; v < kStripVectors; ++v) {
      sums[row][v] = Vector<Real>{};
    }
  }
  const char* next_b = reinterpret_cast<const char*>(b + depth * kStripColumns<Real>);
  const std::int64_t row_bytes = ldc * static_cast<std::int64_t>(sizeof(Real));
  std::int64_t row_at = 0;
  while (depth > 0) {
    // A little at a time: more would hold up the loads of b.
    for (const void* matrix : {static_cast<const void*>(c), ahead.beside}) {
      __builtin_prefetch(static_cast<const char*>(matrix) + row_at, 1);
      __builtin_prefetch(static_cast<const char*>(matrix) + row_at + kVectorBytes, 1);
    }
    row_at = std::min(row_at + row_bytes, (kRows - 1) * row_bytes);
    __builtin_prefetch(ahead.first, 0, 2);
    __builtin_prefetch(ahead.first + ahead.other, 0, 2);
    ahead.first += ahead.step;
    const std::int64_t group = std::min<std::int64_t>(depth, Ahead::kGroup);
    depth -= group;
    if (group % 2 == 1) {
      add_step<kRows>(a, b, sums);
      a += kDepthStep<Real>;
      b += kStripColumns<Real>;
    }
    for (std::int64_t pair = group / 2; pair > 0; --pair) {
      if constexpr (kPrefetch) {
        for (int vector = 0; vector < 2 * kStripVectors; ++vector, next_b += kVectorBytes) {
          __builtin_prefetch(next_b, 0, 2);
        }
      }
      add_step<kRows>(a, b, sums);
      add_step<kRows>(a + kDepthStep<Real>, b + kStripColumns<Real>, sums);
      a += 2 * kDepthStep<Real>;
      b += 2 * kStripColumns<Real>;
    }
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
template <class Real, bool kPrefetch>
StripKernel<Real> strip_kernel(std::int64_t rows) {
  static constexpr auto kKernels = []<int... kBelow>(std::integer_sequence<int, kBelow...>) {
    return std::array<StripKernel<Real>, kStripRows>{
        multiply_strips<kBelow + 1, Real, kPrefetch>...};
  }
  (std::make_integer_sequence<int, kStripRows>{});
  return kKernels[static_cast<std::size_t>(rows - 1)];
}

}  // namespace
}  // namespace bloomery
