#include <algorithm>

#include "ops/common/tile_product_cpu.h"
#include "ops/matmul/own_product.h"
#include "tensor/tensor.h"

namespace bloomery {
namespace {

// Extents of the tiles: 64 columns of the right one lie in the first level of cache, both tiles in
// the second.
constexpr std::int64_t kRows = 192, kColumns = 256, kDepth = 128;

// to [rows, columns] of row length `stride` = the matrix whose element (r, c) is at
// from[r * row_step + c * column_step]. Columns up to the stride become zero.
template <class Real>
void pack(const Real* from, std::int64_t row_step, std::int64_t column_step, std::int64_t rows,
          std::int64_t columns, Real* to, std::int64_t stride) {
  if (column_step == 1) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::copy_n(from + r * row_step, columns, to + r * stride);
    }
  } else {
    constexpr std::int64_t kStrip = 16;  // rows of `to` whose lines stay in the cache
    for (std::int64_t first = 0; first < rows; first += kStrip) {
      const std::int64_t end = std::min(rows, first + kStrip);
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = first; r < end; ++r) {
          to[r * stride + c] = from[r * row_step + c * column_step];
        }
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    std::fill(to + r * stride + columns, to + (r + 1) * stride, Real(0));
  }
}

template <class Real>
class TiledProduct {
 public:
  TiledProduct(Stream& stream, const OwnProduct& product)
      : s_(product.shape),
        a_(static_cast<const Real*>(product.a)),
        b_(static_cast<const Real*>(product.b)),
        c_(static_cast<Real*>(product.c)),
        scratch_(Tensor::empty(stream, product.shape.input,
                               {kRows * kDepth + kDepth * kColumns + kRows * kColumns})),
        packed_a_(static_cast<Real*>(scratch_.data())),
        packed_b_(packed_a_ + kRows * kDepth),
        sums_(packed_b_ + kDepth * kColumns) {}

  void run() {
    for (std::int64_t k = 0; k < s_.k; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, s_.k - k);
      for (std::int64_t j = 0; j < s_.n; j += kColumns) {
        const std::int64_t columns = std::min(kColumns, s_.n - j);
        pack_b(k, j, depth, columns);
        for (std::int64_t i = 0; i < s_.m; i += kRows) {
          multiply(i, j, k, std::min(kRows, s_.m - i), columns, depth);
        }
      }
    }
  }

 private:
  void pack_b(std::int64_t k, std::int64_t j, std::int64_t depth, std::int64_t columns) {
    stride_ = round_up(columns, kLanes<Real>);
    if (s_.transpose_b) {
      pack(b_ + j * s_.ldb + k, 1, s_.ldb, depth, columns, packed_b_, stride_);
    } else {
      pack(b_ + k * s_.ldb + j, s_.ldb, 1, depth, columns, packed_b_, stride_);
    }
  }

  void multiply(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t rows,
                std::int64_t columns, std::int64_t depth) {
    Broadcast<Real> a{a_ + i * s_.lda + k, s_.lda, 1};
    if (s_.transpose_a) {  // its elements of one row are too far apart
      pack(a_ + k * s_.lda + i, 1, s_.lda, rows, depth, packed_a_, depth);
      a = {packed_a_, depth, 1};
    }
    const bool add = s_.add || k > 0;
    Real* const c = c_ + i * s_.ldc + j;
    if (stride_ == columns) {
      return tile_product(a, packed_b_, stride_, c, s_.ldc, rows, columns, depth, add);
    }
    tile_product(a, packed_b_, stride_, sums_, stride_, rows, stride_, depth, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      const Real* sums = sums_ + r * stride_;
      Real* to = c + r * s_.ldc;
      for (std::int64_t column = 0; column < columns; ++column) {
        to[column] = add ? to[column] + sums[column] : sums[column];
      }
    }
  }

  const ProductShape& s_;
  const Real *a_, *b_;
  Real* c_;
  Tensor scratch_;
  Real *packed_a_, *packed_b_, *sums_;
  std::int64_t stride_ = 0;  // of packed_b_
};

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const OwnProduct& product) {
  if (product.shape.input == DType::fp64) {
    TiledProduct<double>(stream, product).run();
  } else {
    TiledProduct<float>(stream, product).run();
  }
}

}  // namespace bloomery
