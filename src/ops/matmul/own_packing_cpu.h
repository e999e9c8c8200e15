// Packing of operands for own_kernel_cpu.h; 16-bit elements become fp32 on the way. For *_cpu.cpp
// files only.
#pragma once

#include <algorithm>

#include "ops/common/convert.h"
#include "ops/matmul/own_kernel_cpu.h"

namespace bloomery {
namespace {

// Squares of b that requests for memory run ahead of packing.
constexpr std::int64_t kSquaresAhead = 8;

// A matrix as it is stored: rows `ld` elements apart.
template <class In>
struct Stored {
  const In* __restrict data;
  std::int64_t ld;
  const In* at(std::int64_t row, std::int64_t column) const { return data + row * ld + column; }
};

template <class In, class Real>
[[gnu::always_inline]] inline void copy_run(const In* __restrict from, std::int64_t count,
                                            Real* __restrict to) {
  if constexpr (std::is_same_v<In, Real>) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Real));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = load(from + i);
    }
  }
}

// Elements from the lower (kFrom = 0) or upper (kFrom = kLanes / 2) halves of a and b in turn.
template <class Real, int kFrom, int... kIndex>
[[gnu::always_inline]] inline Vector<Real> interleave(Vector<Real> a, Vector<Real> b,
                                                      std::integer_sequence<int, kIndex...>) {
  return __builtin_shufflevector(a, b, (kFrom + kIndex / 2 + kIndex % 2 * kLanes<Real>)...);
}

// Exchanges rows and columns of a square: each stage doubles the length of the runs in place.
template <class Real>
[[gnu::always_inline]] inline void transpose_square(Vector<Real> (&rows)[kLanes<Real>]) {
  constexpr int kCount = kLanes<Real>, kHalf = kCount / 2;
  constexpr std::make_integer_sequence<int, kCount> kAll{};
  for (int stage = 1; stage < kCount; stage *= 2) {
    Vector<Real> merged[kCount];
    for (int i = 0; i < kHalf; ++i) {
      merged[2 * i] = interleave<Real, 0>(rows[i], rows[i + kHalf], kAll);
      merged[2 * i + 1] = interleave<Real, kHalf>(rows[i], rows[i + kHalf], kAll);
    }
    std::copy_n(merged, kCount, rows);
  }
}

// to[i * step + r] = element i of row r, for as many rows as a vector has lanes, each as long;
// row_at(r) is where one starts.
template <class Real, class RowAt>
[[gnu::always_inline]] inline void pack_square(const RowAt& row_at, Real* to, std::int64_t step) {
  constexpr int kCount = kLanes<Real>;
  Vector<Real> square[kCount];
  for (int r = 0; r < kCount; ++r) {
    Real row[kCount];
    copy_run(row_at(r), kCount, row);
    square[r] = load_vector(row);
  }
  transpose_square<Real>(square);
  for (int i = 0; i < kCount; ++i) {
    store_vector(to + i * step, square[i]);
  }
}

// to[k * kStripColumns + c] = from(c, k) for a strip of b stored [n, k]; columns beyond `columns`
// become zero.
template <class In, class Real>
void pack_columns_transposed(Stored<In> from, std::int64_t columns, std::int64_t depth,
                             Real* __restrict to) {
  constexpr int kCount = kLanes<Real>, kStep = kStripColumns<Real>;
  for (std::int64_t first = 0; first < kStep; first += kCount) {
    const std::int64_t used = std::clamp<std::int64_t>(columns - first, 0, kCount);
    std::int64_t k = 0;
    for (; used == kCount && k + kCount <= depth; k += kCount) {
      for (int c = 0; c < kCount; ++c) {
        __builtin_prefetch(from.at(first + c, k + kSquaresAhead * kCount));
      }
      pack_square([&](int c) { return from.at(first + c, k); }, to + k * kStep + first, kStep);
    }
    for (; k < depth; ++k) {
      for (std::int64_t c = 0; c < kCount; ++c) {
        to[k * kStep + first + c] = c < used ? Real(load(from.at(first + c, k))) : Real(0);
      }
    }
  }
}

// The same for b stored [k, n].
template <class In, class Real>
void pack_columns(Stored<In> from, std::int64_t columns, std::int64_t depth, Real* __restrict to) {
  constexpr int kStep = kStripColumns<Real>;
  for (std::int64_t k = 0; k < depth; ++k, to += kStep) {
    for (int v = 0; v < kStripVectors; ++v) {
      __builtin_prefetch(from.at(k, kSquaresAhead * kStep + v * kLanes<Real>));
    }
    if (columns == kStep) {
      copy_run(from.at(k, 0), kStep, to);
    } else {
      copy_run(from.at(k, 0), columns, to);
      std::fill(to + columns, to + kStep, Real(0));
    }
  }
}

// A strip of rows of a stored [m, k].
template <class In, class Real>
void pack_rows(Stored<In> from, std::int64_t rows, std::int64_t depth, Real* __restrict to) {
  constexpr int kCount = kLanes<Real>, kStep = kDepthStep<Real>;
  std::int64_t k = 0;
  for (; k + kCount <= depth; k += kCount) {
    for (std::int64_t first = 0; first < rows; first += kCount) {
      // Rows beyond the last repeat it.
      const auto row_at = [&](int r) { return from.at(std::min(first + r, rows - 1), k); };
      pack_square(row_at, to + k * kStep + first, kStep);
    }
  }
  for (; k < depth; ++k) {
    for (std::int64_t row = 0; row < rows; ++row) {
      to[k * kStep + row] = load(from.at(row, k));
    }
  }
}

// A strip of rows of a stored [k, m]; `readable` columns follow the first in memory.
template <class In, class Real>
void pack_rows_transposed(Stored<In> from, std::int64_t rows, std::int64_t readable,
                          std::int64_t depth, Real* __restrict to) {
  constexpr int kStep = kDepthStep<Real>;
  constexpr std::int64_t kPrefetched = 12;
  for (std::int64_t k = 0; k < depth; ++k, to += kStep) {
    __builtin_prefetch(from.at(k + kPrefetched, 0));
    __builtin_prefetch(from.at(k + kPrefetched, kStep - 1));
    __builtin_prefetch(to + kPrefetched * kStep, 1);
    if (readable >= kStep) {
      copy_run(from.at(k, 0), kStep, to);
    } else {
      copy_run(from.at(k, 0), rows, to);
    }
  }
}

}  // namespace
}  // namespace bloomery
