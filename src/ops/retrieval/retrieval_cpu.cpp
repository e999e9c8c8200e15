#include <algorithm>
#include <cmath>

#include "ops/activation/activation_kind.h"
#include "ops/common/convert.h"
#include "ops/retrieval/retrieval.h"

namespace bloomery {
namespace {

bool is_present(const RetrievalRows& k, std::int64_t column) {
  return !k.present || k.present.as<float>()[column] != 0;
}

template <class Real>
std::int32_t rank_of(const RetrievalRows& k, const Real* row, std::int64_t own) {
  std::int32_t better = 0;
  for (std::int64_t c = 0; c < own; ++c) {
    better += is_present(k, c) && !(row[c] < row[own]) ? 1 : 0;
  }
  for (std::int64_t c = own + 1; c < k.scores.columns(); ++c) {
    better += is_present(k, c) && !(row[c] <= row[own]) ? 1 : 0;
  }
  return better;
}

template <class Real>
void leave_out(const RetrievalRows& k, std::int64_t row) {
  const std::int64_t count = k.scores.columns();
  k.ranks.as<std::int32_t>()[row] = -1;
  k.losses.as<Real>()[row] = 0;
  if (k.gradient) {
    std::fill_n(k.scores.as<Real>() + row * count, count, Real(0));
  }
}

template <class Real>
void run_row(const RetrievalRows& k, std::int64_t row, Real upstream) {
  const std::int64_t count = k.scores.columns(), own = row * (count / k.scores.rows());
  if (k.counted) {
    k.counted.as<float>()[row] = is_present(k, own) ? 1.0f : 0.0f;
  }
  if (!is_present(k, own)) {
    return leave_out<Real>(k, row);
  }
  const Real scale = k.scale;
  Real* const x = k.scores.as<Real>() + row * count;
  k.ranks.as<std::int32_t>()[row] = rank_of(k, x, own);
  Real max = x[own];
  for (std::int64_t c = 0; c < count; ++c) {
    max = is_present(k, c) ? std::max(max, x[c]) : max;
  }
  const auto share = [&](std::int64_t c) {
    return is_present(k, c) ? smooth::decay(scale * (x[c] - max)) : Real(0);
  };
  Real sum = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    sum += share(c);
  }
  k.losses.as<Real>()[row] = std::log(sum) + scale * (max - x[own]);
  if (!k.gradient) {
    return;
  }
  for (std::int64_t c = 0; c < count; ++c) {
    x[c] = (share(c) / sum - (c == own ? Real(1) : Real(0))) * upstream;
  }
}

std::int64_t counted_rows(const RetrievalRows& k) {
  const std::int64_t rows = k.scores.rows(),
                     each = k.scores.columns() / std::max<std::int64_t>(rows, 1);
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    counted += is_present(k, row * each) ? 1 : 0;
  }
  return std::max<std::int64_t>(counted, 1);
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
    const Real upstream =
        Real(k.scale) * Real(k.factor) * grad_scale / static_cast<Real>(counted_rows(k));
    stream.device().pool().for_ranges(
        rows, std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, k.scores.columns())),
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
                                   [&](std::int32_t rank) { return rank >= 0 && rank < k.most; });
  const auto all =
      std::count_if(ranks, ranks + k.ranks.numel(), [](std::int32_t rank) { return rank >= 0; });
  dispatch_real(k.share.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    const Real of = k.count ? Real(1) : static_cast<Real>(std::max<std::ptrdiff_t>(all, 1));
    *k.share.as<Real>() = static_cast<Real>(found) / of;
  });
}

}  // namespace bloomery
