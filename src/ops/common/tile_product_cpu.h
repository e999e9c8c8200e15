// A matrix product of our own on the CPU: tiles that lie packed in L1 and L2. For *_cpu.cpp files
// only.
#pragma once

#include <algorithm>

#include "ops/common/simd.h"

namespace bloomery {
namespace {

// A factor whose elements are broadcast: element (row, k) is at data[row * row_stride + k *
// depth_stride]. One of the strides is 1.
template <class Real>
struct Broadcast {
  const Real* data;
  std::int64_t row_stride, depth_stride;
};

// What the registers of the level hold: rows x vectors of sums, one row of the other factor.
constexpr int kProductVectors = kVectorBytes == 64 ? 4 : 2;
constexpr int kProductRows = kVectorBytes == 16 ? 4 : 6;

template <int kRows, int kVectors, class Real>
[[gnu::always_inline]] inline void product_block(Broadcast<Real> a, const Real* b,
                                                 std::int64_t b_stride, Real* out,
                                                 std::int64_t out_stride, std::int64_t depth,
                                                 bool add) {
  Vector<Real> sums[kRows][kVectors];
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kVectors; ++v) {
      sums[row][v] = add ? load_vector(out + row * out_stride + v * kLanes<Real>) : Vector<Real>{};
    }
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector<Real> lanes[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      lanes[v] = load_vector(b + k * b_stride + v * kLanes<Real>);
    }
    for (int row = 0; row < kRows; ++row) {
      const Real factor = a.data[row * a.row_stride + k * a.depth_stride];
      for (int v = 0; v < kVectors; ++v) {
        sums[row][v] += factor * lanes[v];
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kVectors; ++v) {
      store_vector(out + row * out_stride + v * kLanes<Real>, sums[row][v]);
    }
  }
}

template <int kVectors, class Real>
void product_column(Broadcast<Real> a, const Real* b, std::int64_t b_stride, Real* out,
                    std::int64_t out_stride, std::int64_t rows, std::int64_t depth, bool add) {
  std::int64_t row = 0;
  const auto block = [&]<int kRows>() {
    for (; row + kRows <= rows; row += kRows) {
      product_block<kRows, kVectors>(
          Broadcast<Real>{a.data + row * a.row_stride, a.row_stride, a.depth_stride}, b, b_stride,
          out + row * out_stride, out_stride, depth, add);
    }
  };
  block.template operator()<kProductRows>();
  block.template operator()<2>();
  block.template operator()<1>();
}

// out [rows, columns] (+)= a [rows, depth] b [depth, columns]; columns is a multiple of the vector
// length, and both matrices are padded to it.
template <class Real>
void tile_product(Broadcast<Real> a, const Real* b, std::int64_t b_stride, Real* out,
                  std::int64_t out_stride, std::int64_t rows, std::int64_t columns,
                  std::int64_t depth, bool add) {
  std::int64_t column = 0;
  const auto sweep = [&]<int kVectors>() {
    for (; column + kVectors * kLanes<Real> <= columns; column += kVectors * kLanes<Real>) {
      product_column<kVectors>(a, b + column, b_stride, out + column, out_stride, rows, depth, add);
    }
  };
  sweep.template operator()<kProductVectors>();
  sweep.template operator()<2>();
  sweep.template operator()<1>();
}

}  // namespace
}  // namespace bloomery
