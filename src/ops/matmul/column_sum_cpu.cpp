#include <algorithm>

#include "ops/common/convert.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

// Rows of one partial sum: by shape alone, so that the order of additions is fixed.
constexpr std::int64_t kRows = 512;
constexpr std::int64_t kColumns = 1024;

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
    for (std::int64_t row = part * kRows; row < std::min(m, (part + 1) * kRows); ++row) {
      const T* values = x + row * n + first;
      for (std::int64_t c = 0; c < columns; ++c) {
        total[c] += load(values + c);
      }
    }
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
