#include <cmath>

#include "ops/activation/activation_kind.h"
#include "ops/loss/distill.h"
#include "ops/loss/rows_cpu.h"

namespace bloomery {
namespace {

enum Sum { kStudent, kTeacher, kDifference };  // rows of the maxima and of the sums

template <class T>
void statistics_row(const DistillStatistics& k, std::int64_t row) {
  using Real = Accumulator<T>;
  const std::int64_t rows = k.student.rows(), columns = k.student.columns();
  const T* s = k.student.as<T>() + row * columns;
  const T* t = k.teacher.as<T>() + row * columns;
  const Real inverse = Real(k.inverse_temperature);
  const Real max_s = row_max(s, k.num_valid), max_t = row_max(t, k.num_valid);
  for (const View& max : {k.local_max, k.max}) {
    max.as<Real>()[kStudent * rows + row] = max_s;
    max.as<Real>()[kTeacher * rows + row] = max_t;
  }
  Real* const sums = k.sums.as<Real>() + row;
  sums[kStudent * rows] = sum_in_lanes<Real>(k.num_valid, [=](Real& lane, std::int64_t i) {
    lane += smooth::decay((load(s + i) - max_s) * inverse);
  });
  sums[kTeacher * rows] = sum_in_lanes<Real>(k.num_valid, [=](Real& lane, std::int64_t i) {
    lane += smooth::decay((load(t + i) - max_t) * inverse);
  });
  sums[kDifference * rows] = sum_in_lanes<Real>(k.num_valid, [=](Real& lane, std::int64_t i) {
    const Real weight = smooth::decay((load(t + i) - max_t) * inverse);
    const Real term = weight * ((load(t + i) - load(s + i)) * inverse);
    lane += weight > Real(0) ? term : Real(0);  // a token that is impossible has no part
  });
}

template <class T>
void gradient_row(const DistillGradient& k, std::int64_t row) {
  using Real = Accumulator<T>;
  const std::int64_t rows = k.student.rows(), columns = k.student.columns();
  const T* s = k.student.as<T>() + row * columns;
  T* t = k.teacher.as<T>() + row * columns;
  const Real scale = k.grad_scale ? Real(*k.grad_scale.as<float>()) : Real(1);
  const Real inverse = Real(k.inverse_temperature);
  const Real weight =
      Real(mask_at(k.mask, row)) * *k.inverse.as<Real>() * scale * Real(k.scale) * inverse;
  if (weight == Real(0)) {
    std::fill_n(t, columns, T(0.0f));
    return;
  }
  const Real* const max = k.max.as<Real>() + row;
  const Real* const sums = k.sums.as<Real>() + row;
  const Real max_s = max[kStudent * rows], max_t = max[kTeacher * rows];
  const Real factor_s = weight / sums[kStudent * rows], factor_t = weight / sums[kTeacher * rows];
  for (std::int64_t i = 0; i < k.num_valid; ++i) {
    store(t + i, smooth::decay((load(s + i) - max_s) * inverse) * factor_s -
                     smooth::decay((load(t + i) - max_t) * inverse) * factor_t);
  }
  std::fill(t + k.num_valid, t + columns, T(0.0f));
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const DistillStatistics& k) {
  dispatch_floating(k.student.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(stream, k.student, [&](std::int64_t row) { statistics_row<T>(k, row); });
  });
}

template <>
void run(ThisCpu, Stream&, const DistillRescale& k) {
  dispatch_sum(k.sums.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    const std::int64_t rows = k.max.numel() / 2;
    for (std::int64_t i = 0; i < 2 * rows; ++i) {
      const Real local = k.local_max.as<Real>()[i], max = k.max.as<Real>()[i];
      const Real factor =
          local == max ? Real(1) : std::exp((local - max) * Real(k.inverse_temperature));
      k.sums.as<Real>()[i] *= factor;
      if (i >= rows) {
        k.sums.as<Real>()[rows + i] *= factor;
      }
    }
  });
}

template <>
void run(ThisCpu, Stream&, const DistillTokens& k) {
  dispatch_sum(k.losses.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    const std::int64_t rows = k.losses.numel();
    for (std::int64_t row = 0; row < rows; ++row) {
      const Real* const max = k.max.as<Real>() + row;
      const Real* const sums = k.sums.as<Real>() + row;
      const Real distance =
          (max[kStudent * rows] - max[kTeacher * rows]) * Real(k.inverse_temperature) +
          std::log(sums[kStudent * rows]) - std::log(sums[kTeacher * rows]);
      k.losses.as<Real>()[row] =
          Real(k.scale) * (sums[kDifference * rows] / sums[kTeacher * rows] + distance);
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const DistillGradient& k) {
  dispatch_floating(k.student.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(stream, k.student, [&](std::int64_t row) { gradient_row<T>(k, row); });
  });
}

}  // namespace bloomery
