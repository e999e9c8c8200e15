// What the kernels of losses share on the CPU: sums and maxima of rows of logits.
#pragma once

#include <algorithm>
#include <limits>

#include "ops/common/convert.h"
#include "tensor/tensor.h"

namespace bloomery {
namespace {

// Reductions run over this many independent lanes, which the compiler turns into vectors without
// reordering any sum by itself.
constexpr int kLanes = 64;

std::int64_t rows_per_task(std::int64_t columns) {
  return std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, columns));
}

// body(row) for every row of a matrix, on all threads.
template <class Body>
void for_rows(Stream& stream, const ConstView& matrix, Body&& body) {
  stream.device().pool().for_ranges(matrix.rows(), rows_per_task(matrix.columns()),
                                    [&](std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t row = begin; row < end; ++row) {
                                        body(row);
                                      }
                                    });
}

template <class T>
Accumulator<T> row_max(const T* x, std::int64_t count) {
  using Real = Accumulator<T>;
  Real lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<Real>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const Real value = load(x + i + l);
      lanes[l] = value > lanes[l] ? value : lanes[l];
    }
  }
  for (; i < count; ++i) {
    lanes[0] = std::max(lanes[0], load(x + i));
  }
  return *std::max_element(lanes, lanes + kLanes);
}

// add(lanes[l], i) for every i < count, then the sum of the lanes.
template <class Real, class Add>
Real sum_in_lanes(std::int64_t count, Add&& add) {
  Real lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      add(lanes[l], i + l);
    }
  }
  for (int l = 0; i < count; ++i, ++l) {
    add(lanes[l], i);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      lanes[l] += lanes[l + half];
    }
  }
  return lanes[0];
}

float mask_at(const ConstView& mask, std::int64_t row) {
  return mask ? mask.as<float>()[row] : 1.0f;
}

// The accumulation types are float and double.
template <class Body>
void dispatch_sum(DType dtype, Body&& body) {
  if (dtype == DType::fp64) {
    body(TypeTag<double>{});
  } else {
    body(TypeTag<float>{});
  }
}

}  // namespace
}  // namespace bloomery
