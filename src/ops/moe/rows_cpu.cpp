#include <algorithm>

#include "ops/common/convert.h"
#include "ops/common/row_lanes.h"
#include "ops/moe/rows.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements per item of work

template <class Body>
void for_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Body& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  stream.device().pool().for_ranges(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      body(row);
    }
  });
}

template <class T>
void sum_rows(Stream& stream, const SumRows& k) {
  using Real = Accumulator<T>;
  const std::int64_t columns = k.x.columns(), choices = k.index.columns();
  for_rows(stream, k.index.rows(), columns * choices, [&](std::int64_t t) {
    T* const y = k.y.as<T>() + t * columns;
    for_lanes<Real>(columns, [&](std::int64_t c, auto part) {
      Lanes<Real> sum{};
      if (k.add) {
        sum = load_lanes(y + c, part);
      }
      for (std::int64_t j = t * choices; j < (t + 1) * choices; ++j) {
        const std::int32_t row = k.index.as<std::int32_t>()[j];
        if (row >= 0) {
          const Real weight = k.weights ? k.weights.as<Real>()[j] : Real(1);
          sum += weight * load_lanes(k.x.as<T>() + row * columns + c, part);
        }
      }
      store_lanes(y + c, sum, part);
    });
  });
}

template <class T>
void row_dots(Stream& stream, const RowDots& k) {
  using Real = Accumulator<T>;
  const std::int64_t columns = k.a.columns(), choices = k.index.columns();
  for_rows(stream, k.index.rows(), columns * choices, [&](std::int64_t t) {
    for (std::int64_t j = t * choices; j < (t + 1) * choices; ++j) {
      const std::int32_t row = k.index.as<std::int32_t>()[j];
      Lanes<Real> sum{};
      if (row >= 0) {
        for_lanes<Real>(columns, [&](std::int64_t c, auto part) {
          sum += load_lanes(k.a.as<T>() + t * columns + c, part) *
                 load_lanes(k.b.as<T>() + row * columns + c, part);
        });
      }
      Real& y = k.y.as<Real>()[j];
      y = k.add ? y + sum_of_lanes<Real>(sum) : sum_of_lanes<Real>(sum);
    }
  });
}

template <class T>
void gather_rows(Stream& stream, const GatherRows& k) {
  using Real = Accumulator<T>;
  const std::int64_t columns = k.y.columns();
  for_rows(stream, k.y.rows(), columns, [&](std::int64_t row) {
    T* const y = k.y.as<T>() + row * columns;
    const std::int32_t from = k.index.as<std::int32_t>()[row];
    if (from < 0) {
      std::fill_n(y, columns, T(0));
      return;
    }
    const T* const x = k.x.as<T>() + from / k.per_row * columns;
    if (!k.factors) {
      std::copy_n(x, columns, y);
      return;
    }
    const Real factor = k.factors.as<Real>()[from];
    for_lanes<Real>(columns, [&](std::int64_t c, auto part) {
      store_lanes(y + c, factor * load_lanes(x + c, part), part);
    });
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const GatherRows& k) {
  dispatch_floating(k.x.dtype,
                    [&](auto tag) { gather_rows<typename decltype(tag)::type>(stream, k); });
}

template <>
void run(ThisCpu, Stream& stream, const SumRows& k) {
  dispatch_floating(k.x.dtype,
                    [&](auto tag) { sum_rows<typename decltype(tag)::type>(stream, k); });
}

template <>
void run(ThisCpu, Stream& stream, const RowDots& k) {
  dispatch_floating(k.a.dtype,
                    [&](auto tag) { row_dots<typename decltype(tag)::type>(stream, k); });
}

}  // namespace bloomery
