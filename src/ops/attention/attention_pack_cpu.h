// Copies heads into contiguous tiles in the type that sums are kept in, padded to whole vectors.
// For
// *_cpu.cpp files only.
#pragma once

#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/common/convert.h"
#include "ops/common/simd.h"

namespace bloomery {
namespace {

constexpr std::int64_t kQueryBlock = 64;
constexpr std::int64_t kPrefetchRows = 8, kCacheLine = 64;

// Memory of one task, cut into arrays that start at a multiple of the vector length.
template <class Real>
class Scratch {
 public:
  Scratch(Stream& stream, std::int64_t count)
      : memory_(Tensor::empty(stream, dtype_of<Real>, {count})),
        next_(static_cast<Real*>(memory_.data())) {}
  Real* take(std::int64_t count) {
    Real* taken = next_;
    next_ += round_up(count, kLanes<Real>);
    return taken;
  }

 private:
  Tensor memory_;
  Real* next_;
};

// Channels of a packed head: whole vectors, and a multiple of four for transposing.
template <class Real>
std::int64_t padded_head(const AttentionProblem& problem) {
  return round_up(problem.head_dim, std::max(4, kLanes<Real>));
}

// The first channel of head `head` in token `token`.
template <class T>
T* head_at(const HeadView& view, const AttentionProblem& problem, std::int64_t token,
           std::int64_t head) {
  const std::int64_t per_group = problem.heads_per_group();
  return static_cast<T*>(view.data) + token * view.token_stride +
         head / per_group * view.group_stride + head % per_group * problem.head_dim;
}

// Rows of `width` numbers to rows of `padded`, the rest zeros. The rows are short and far apart,
// which hardware does not prefetch.
template <class T, class Real>
void pack_rows(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t width,
               std::int64_t padded, Real* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* source = from + row * from_stride;
    Real* target = to + row * padded;
    if (row + kPrefetchRows < rows) {
      for (std::int64_t i = 0; i < width; i += kCacheLine / static_cast<std::int64_t>(sizeof(T))) {
        __builtin_prefetch(source + kPrefetchRows * from_stride + i);
      }
    }
    for (std::int64_t i = 0; i < width; ++i) {
      target[i] = load(source + i);
    }
    std::fill(target + width, target + padded, Real(0));
  }
}

// Four rows of four numbers at `from` become four rows at `to`.
template <class Real>
[[gnu::always_inline]] inline void transpose_four(const Real* from, std::int64_t from_stride,
                                                  Real* to, std::int64_t to_stride) {
  using Four = typename VectorOf<Real, 4>::type;
  Four rows[4];
  for (int i = 0; i < 4; ++i) {
    std::memcpy(&rows[i], from + i * from_stride, sizeof(Four));
  }
  const Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Four c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Four d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  for (int i = 0; i < 4; ++i) {
    std::memcpy(to + i * to_stride, &rows[i], sizeof(Four));
  }
}

// to [padded][kQueryBlock] = from [rows][padded] transposed. Columns from `rows` to the next
// multiple of the vector length become zeros, and so do those rows of `from`, which has room for
// them.
template <class Real>
void transpose_rows(Real* from, std::int64_t rows, std::int64_t padded, Real* to) {
  const std::int64_t columns = round_up(rows, std::max(4, kLanes<Real>));
  std::fill(from + rows * padded, from + columns * padded, Real(0));
  for (std::int64_t row = 0; row < columns; row += 4) {
    for (std::int64_t c = 0; c < padded; c += 4) {
      transpose_four(from + row * padded + c, padded, to + c * kQueryBlock + row, kQueryBlock);
    }
  }
}

}  // namespace
}  // namespace bloomery
