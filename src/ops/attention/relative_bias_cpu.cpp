#include "ops/attention/relative_bias.h"
#include "ops/common/convert.h"

namespace bloomery {

template <>
void run(ThisCpu, Stream&, const SpreadBias& k) {
  const std::int64_t heads = k.by_distance.rows(), distances = k.by_distance.columns();
  const std::int64_t reach = distances / 2, columns = k.table.columns();
  dispatch_floating(k.table.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    for (std::int64_t i = 0; i < distances; ++i) {
      const T* const row = k.table.as<T>() + k.buckets.bucket(i - reach) * columns + k.first_column;
      for (std::int64_t head = 0; head < heads; ++head) {
        k.by_distance.as<Real>()[head * distances + i] =
            load(row + head) / static_cast<Real>(k.scale);
      }
    }
  });
}

namespace {

template <class Real>
void gather(const GatherBias& k) {
  const std::int64_t heads = k.by_distance.rows(), distances = k.by_distance.columns();
  const std::int64_t reach = distances / 2, columns = k.table.columns();
  for (std::int64_t b = 0; b < k.buckets.count; ++b) {
    const std::int32_t first = k.buckets.first[b], last = k.buckets.last[b];
    const std::int64_t begin = distance_index(first, reach);
    const std::int64_t end = first <= last ? distance_index(last, reach) + 1 : begin;
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t head = column - k.first_column;
      Real sum = 0;
      for (std::int64_t i = begin; head >= 0 && head < heads && i < end; ++i) {
        sum += k.by_distance.as<Real>()[head * distances + i];
      }
      Real& to = k.table.as<Real>()[b * columns + column];
      to = sum / static_cast<Real>(k.scale) + (k.add ? to : Real(0));
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream&, const GatherBias& k) {
  k.table.dtype == DType::fp64 ? gather<double>(k) : gather<float>(k);
}

}  // namespace bloomery
