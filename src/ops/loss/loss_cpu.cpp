#include <cmath>

#include "ops/activation/activation_kind.h"
#include "ops/loss/loss_steps.h"
#include "ops/loss/rows_cpu.h"

namespace bloomery {
namespace {

template <class T>
Accumulator<T> row_sum(const T* x, std::int64_t count, Accumulator<T> max) {
  using Real = Accumulator<T>;
  return sum_in_lanes<Real>(
      count, [x, max](Real& lane, std::int64_t i) { lane += smooth::decay(load(x + i) - max); });
}

template <class T>
void gradient_row(const LossGradient& k, std::int64_t row) {
  using Real = Accumulator<T>;
  const std::int64_t columns = k.logits.columns(), valid = k.columns.num_valid;
  T* x = k.logits.as<T>() + row * columns;
  const Real scale = k.grad_scale ? Real(*k.grad_scale.as<float>()) : Real(1);
  const Real weight = Real(mask_at(k.mask, row)) * *k.inverse.as<Real>() * scale;
  if (weight == Real(0)) {
    std::fill_n(x, columns, T(0.0f));
    return;
  }
  const Real max = k.max.as<Real>()[row], factor = weight / k.sum.as<Real>()[row];
  const std::int64_t label = k.columns.of(k.labels.as<std::int32_t>()[row]);
  const Real target = label >= 0 ? load(x + label) : Real(0);
  for (std::int64_t i = 0; i < valid; ++i) {
    store(x + i, smooth::decay(load(x + i) - max) * factor);
  }
  if (label >= 0) {
    store(x + label, smooth::decay(target - max) * factor - weight);
  }
  std::fill(x + valid, x + columns, T(0.0f));
}

}  // namespace

template <>
void run(ThisCpu, Stream&, const LossMaskSum& k) {
  double sum = 0;
  for (std::int64_t t = 0; t < k.num_tokens; ++t) {
    sum += mask_at(k.mask, t);
  }
  if (k.sum) {
    *k.sum.as<float>() = static_cast<float>(sum);
  }
  if (k.inverse) {
    dispatch_sum(k.inverse.dtype, [&](auto tag) {
      using Real = typename decltype(tag)::type;
      *k.inverse.as<Real>() = static_cast<Real>(sum > 0 ? 1 / sum : 0);
    });
  }
}

template <>
void run(ThisCpu, Stream& stream, const LossStatistics& k) {
  const std::int64_t columns = k.logits.columns(), valid = k.columns.num_valid;
  dispatch_floating(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    for_rows(stream, k.logits, [&](std::int64_t row) {
      const T* x = k.logits.as<T>() + row * columns;
      const Real max = row_max(x, valid);
      const std::int64_t label = k.columns.of(k.labels.as<std::int32_t>()[row]);
      k.local_max.as<Real>()[row] = max;
      k.max.as<Real>()[row] = max;
      k.sum.as<Real>()[row] = row_sum(x, valid, max);
      k.target.as<Real>()[row] = label >= 0 ? load(x + label) : Real(0);
    });
  });
}

template <>
void run(ThisCpu, Stream&, const LossRescale& k) {
  dispatch_sum(k.sum.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    for (std::int64_t row = 0; row < k.sum.numel(); ++row) {
      const Real local = k.local_max.as<Real>()[row], max = k.max.as<Real>()[row];
      k.sum.as<Real>()[row] *= local == max ? Real(1) : std::exp(local - max);
    }
  });
}

template <>
void run(ThisCpu, Stream&, const LossTokens& k) {
  dispatch_sum(k.losses.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    for (std::int64_t row = 0; row < k.losses.numel(); ++row) {
      const std::int64_t label = k.labels.as<std::int32_t>()[row];
      const bool known = label >= 0 && label < k.vocabulary;
      check(known || mask_at(k.mask, row) == 0.0f, "loss: label ", label,
            " is outside the vocabulary [0, ", k.vocabulary,
            ") and its loss mask is not zero; mask it or correct the data");
      const Real distance = k.max.as<Real>()[row] - k.target.as<Real>()[row];
      k.losses.as<Real>()[row] = known ? std::log(k.sum.as<Real>()[row]) + distance : Real(0);
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const LossGradient& k) {
  dispatch_floating(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(stream, k.logits, [&](std::int64_t row) { gradient_row<T>(k, row); });
  });
}

template <>
void run(ThisCpu on, Stream& stream, const LossAndGradient& k) {
  loss_and_gradient_in_steps(on, stream, k);
}

template <>
void run(ThisCpu, Stream&, const LossMean& k) {
  dispatch_sum(k.loss.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    double sum = 0;
    for (std::int64_t t = 0; t < k.losses.numel(); ++t) {
      if (const float mask = mask_at(k.mask, t); mask != 0.0f) {
        sum += double{mask} * static_cast<double>(k.losses.as<Real>()[t]);
      }
    }
    *k.loss.as<Real>() = static_cast<Real>(sum * static_cast<double>(*k.inverse.as<Real>()));
  });
}

template <>
void run(ThisCpu, Stream& stream, const MaskColumns& k) {
  const std::int64_t columns = k.logits.columns();
  dispatch_floating(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(stream, k.logits, [&](std::int64_t row) {
      T* x = k.logits.as<T>() + row * columns;
      std::fill(x + k.num_valid, x + columns, T(-std::numeric_limits<float>::infinity()));
    });
  });
}

}  // namespace bloomery
