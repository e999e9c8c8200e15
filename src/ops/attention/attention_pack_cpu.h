// Copies heads into contiguous tiles, padded with zeros. For *_cpu.cpp files only.
#pragma once

#include <algorithm>
#include <vector>

#include "base/prefetch.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_settings.h"
#include "ops/common/vector_lanes.h"

namespace bloomery {
namespace {

constexpr std::int64_t kQueryBlock = 64, kKeyTile = 64;
constexpr std::int64_t kPrefetchRows = 8, kCacheLine = 64;

// Memory of one task: arrays that start at a multiple of a cache line, cut from a few blocks.
class Scratch {
 public:
  explicit Scratch(Stream& stream) : stream_(stream) {}
  template <class Element>
  Element* take(std::int64_t count) {
    const std::int64_t bytes =
        round_up(count * static_cast<std::int64_t>(sizeof(Element)), kCacheLine);
    if (bytes > left_) {
      left_ = std::max(bytes, kBlockBytes);
      blocks_.push_back(Tensor::empty(stream_, DType::uint8, {left_}));
      next_ = static_cast<char*>(blocks_.back().data());
    }
    char* const taken = next_;
    next_ += bytes;
    left_ -= bytes;
    return reinterpret_cast<Element*>(taken);
  }

 private:
  static constexpr std::int64_t kBlockBytes = 256 * 1024;
  Stream& stream_;
  std::vector<Tensor> blocks_;
  char* next_ = nullptr;
  std::int64_t left_ = 0;
};

// Consecutive tokens of one head: head_dim numbers each, `stride` numbers apart.
template <class T>
struct Rows {
  const T* data;
  std::int64_t stride, count;
};

// The first channel of head `head` in token `token`.
template <class T>
T* head_at(const HeadView& view, const AttentionProblem& problem, std::int64_t token,
           std::int64_t head) {
  const std::int64_t per_group = problem.heads_per_group();
  return static_cast<T*>(view.data) + token * view.token_stride +
         head / per_group * view.group_stride + head % per_group * problem.head_dim;
}

// Calls ask(address) for every line of a row.
template <class T, class Ask>
[[gnu::always_inline]] inline void for_row_lines(const T* row, std::int64_t width, const Ask& ask) {
  for (std::int64_t i = 0; i < width; i += kCacheLine / static_cast<std::int64_t>(sizeof(T))) {
    ask(row + i);
  }
}

// Prefetches rows that are used after other work, too many for L1.
template <class T>
void prefetch_rows(const Rows<T>& rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for_row_lines(rows.data + row * rows.stride, width, prefetch_to_l2);
  }
}

// Rows of `width` numbers to rows of `padded`, the rest zeros. The rows are short and far apart,
// which hardware does not prefetch and which makes a call of memcpy for each expensive.
template <class T, class Packed>
void pack_rows(const Rows<T>& from, std::int64_t width, std::int64_t padded, Packed* to) {
  for (std::int64_t row = 0; row < from.count; ++row) {
    const T* source = from.data + row * from.stride;
    Packed* target = to + row * padded;
    if (row + kPrefetchRows < from.count) {
      for_row_lines(source + kPrefetchRows * from.stride, width, prefetch);
    }
    std::int64_t i = 0;
    if constexpr (std::is_same_v<T, Packed>) {
      for (; i + kLanes<T> <= width; i += kLanes<T>) {
        std::memcpy(target + i, source + i, kVectorBytes);
      }
      for (; i < width; ++i) {
        target[i] = source[i];
      }
    } else {
      for (; i < width; ++i) {
        target[i] = load(source + i);
      }
    }
    for (; i < padded; ++i) {
      target[i] = Packed{};
    }
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

// to [columns][to_stride] = from [rows][from_stride] transposed; rows and columns are multiples of
// four.
template <class Real>
void transpose(const Real* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               Real* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; row += 4) {
    for (std::int64_t c = 0; c < columns; c += 4) {
      transpose_four(from + row * from_stride + c, from_stride, to + c * to_stride + row,
                     to_stride);
    }
  }
}

}  // namespace
}  // namespace bloomery
