#include <algorithm>
#include <cmath>

#include "ops/activation/activation_kind.h"
#include "ops/common/convert.h"
#include "ops/retrieval/retrieval.h"

namespace bloomery {
namespace {

template <class Real>
std::int32_t rank_of(const Real* row, std::int64_t own, std::int64_t count) {
  std::int32_t better = 0;
  for (std::int64_t c = 0; c < own; ++c) {
    better += !(row[c] < row[own]) ? 1 : 0;
  }
  for (std::int64_t c = own + 1; c < count; ++c) {
    better += !(row[c] <= row[own]) ? 1 : 0;
  }
  return better;
}

template <class Real>
void run_row(const RetrievalRows& k, std::int64_t row, Real upstream) {
  const std::int64_t count = k.scores.columns();
  const Real scale = k.scale;
  Real* const x = k.scores.as<Real>() + row * count;
  k.ranks.as<std::int32_t>()[row] = rank_of(x, row, count);
  const Real max = *std::max_element(x, x + count);
  Real sum = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    sum += smooth::decay(scale * (x[c] - max));
  }
  k.losses.as<Real>()[row] = std::log(sum) + scale * (max - x[row]);
  if (!k.gradient) {
    return;
  }
  for (std::int64_t c = 0; c < count; ++c) {
    x[c] = (smooth::decay(scale * (x[c] - max)) / sum - (c == row ? Real(1) : Real(0))) * upstream;
  }
}

template <class Body>
void dispatch_real(DType dtype, Body&& body) {
  if (dtype == DType::fp64) {
    body(TypeTag<double>{});
  } else {
    body(TypeTag<float>{});
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const RetrievalRows& k) {
  const std::int64_t rows = k.scores.rows();
  dispatch_real(k.scores.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    const Real grad_scale = k.grad_scale ? Real(*k.grad_scale.as<float>()) : Real(1);
    const Real upstream = Real(k.scale) * Real(k.factor) * grad_scale / static_cast<Real>(rows);
    stream.device().pool().for_ranges(
        rows, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, rows)),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            run_row<Real>(k, row, upstream);
          }
        });
  });
}

template <>
void run(ThisCpu, Stream&, const RetrievalShare& k) {
  const auto* const ranks = k.ranks.as<std::int32_t>();
  const auto found = std::count_if(ranks, ranks + k.ranks.numel(),
                                   [&](std::int32_t rank) { return rank < k.most; });
  dispatch_real(k.share.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    *k.share.as<Real>() = static_cast<Real>(found) / static_cast<Real>(k.ranks.numel());
  });
}

}  // namespace bloomery
