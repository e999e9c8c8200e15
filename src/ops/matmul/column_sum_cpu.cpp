#include <algorithm>

#include "ops/common/convert.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

// Rows of one partial sum: by shape alone, so that the order of additions is fixed.
constexpr std::int64_t kRows = 512;
constexpr std::int64_t kColumns = 1024;

// total[c] += sum of rows [begin, end) of x, eight rows at a time as a tree: fewer passes over
// `total` and smaller rounding errors than row by row.
template <class T>
void add_rows(const T* x, std::int64_t stride, std::int64_t begin, std::int64_t end,
              std::int64_t columns, Accumulator<T>* total) {
  std::int64_t row = begin;
  for (; row + 8 <= end; row += 8) {
    const T* v = x + row * stride;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto at = [&](int i) { return load(v + i * stride + c); };
      total[c] += ((at(0) + at(1)) + (at(2) + at(3))) + ((at(4) + at(5)) + (at(6) + at(7)));
    }
  }
  for (; row < end; ++row) {
    for (std::int64_t c = 0; c < columns; ++c) {
      total[c] += load(x + row * stride + c);
    }
  }
}

template <class T>
void column_sum(Stream& stream, const ColumnSum& k) {
  using Sum = Accumulator<T>;
  const std::int64_t n = k.sums.numel();
  const std::int64_t m = n > 0 ? k.x.numel() / n : 0;
  const T* x = k.x.as<T>();
  Sum* sums = k.sums.as<Sum>();
  const std::int64_t num_parts = (m + kRows - 1) / kRows;
  const std::int64_t num_strips = (n + kColumns - 1) / kColumns;
  const Tensor partial =
      Tensor::empty(stream, dtype_of<Sum>, {std::max<std::int64_t>(num_parts, 1), n});
  Sum* parts = static_cast<Sum*>(partial.data());
  ThreadPool& pool = stream.device().pool();
  pool.for_each(num_parts * num_strips, [=](std::int64_t item) {
    const std::int64_t part = item / num_strips, first = item % num_strips * kColumns;
    const std::int64_t columns = std::min(kColumns, n - first);
    Sum* total = parts + part * n + first;
    std::fill_n(total, columns, Sum(0));
    add_rows(x + first, n, part * kRows, std::min(m, (part + 1) * kRows), columns, total);
  });
  pool.for_ranges(n, kColumns, [=](std::int64_t begin, std::int64_t end) {
    if (!k.add) {
      std::fill(sums + begin, sums + end, Sum(0));
    }
    for (std::int64_t part = 0; part < num_parts; ++part) {
      for (std::int64_t c = begin; c < end; ++c) {
        sums[c] += parts[part * n + c];
      }
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const ColumnSum& k) {
  check(k.sums.dtype == accumulation_dtype(k.x.dtype) && k.x.columns() == k.sums.numel(),
        "column_sum: ", k.x.dtype, k.x.shape, " cannot be summed into ", k.sums.dtype,
        k.sums.shape);
  dispatch_floating(k.x.dtype,
                    [&](auto tag) { column_sum<typename decltype(tag)::type>(stream, k); });
}

}  // namespace bloomery
