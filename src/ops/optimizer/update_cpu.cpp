#include <algorithm>
#include <cmath>

#include "ops/common/convert.h"
#include "ops/optimizer/update.h"

namespace bloomery {
namespace {

constexpr std::int64_t kUnitsPerItem = 128;
// Weights that are rounded to the compute dtype while they are still in L1.
constexpr std::int64_t kUnitsPerBlock = 8;
// Elements that are updated between prefetches, and by how many those run ahead: some processors'
// own prefetchers do not keep up with so many buffers.
constexpr std::int64_t kPiece = 64, kAhead = 512;

// Prefetches the lines of `count` elements. Addresses beyond a buffer do no harm.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* first, std::int64_t count) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += kLine) {
    __builtin_prefetch(first + i);
  }
}
template <class... Buffers>
[[gnu::always_inline]] inline void prefetch_ahead(std::int64_t i, Buffers... buffers) {
  (prefetch(buffers + i + kAhead, kPiece), ...);
}

template <class Real>
struct Scalars {
  Real grad_factor, step_size, inverse_sqrt_bias2, decay_factor, l2;

  Scalars(const UpdateScalars& from, bool decays)
      : grad_factor(static_cast<Real>(from.grad_factor)),
        step_size(static_cast<Real>(from.step_size)),
        inverse_sqrt_bias2(static_cast<Real>(from.inverse_sqrt_bias2)),
        decay_factor(static_cast<Real>(decays ? from.decay_factor : 1.0)),
        l2(static_cast<Real>(decays ? from.l2 : 0.0)) {}
};

// The rules are functors over elements [first, first + count), all with the same flags; `weights`
// are those elements' master weights.
template <class Real, class Grad>
struct Adam {
  UpdateBuffers buffers;
  Real beta1, rest1, beta2, rest2, epsilon;

  explicit Adam(const AdamUpdate& k)
      : buffers(k.buffers),
        beta1(static_cast<Real>(k.beta1)),
        rest1(static_cast<Real>(1.0 - k.beta1)),
        beta2(static_cast<Real>(k.beta2)),
        rest2(static_cast<Real>(1.0 - k.beta2)),
        epsilon(static_cast<Real>(k.epsilon)) {}

  void operator()(Real* __restrict weights, std::int64_t first, std::int64_t count,
                  const Scalars<Real> s) const {
    const Grad* __restrict grad = buffers.grad.as<Grad>() + first;
    Real* __restrict moment1 = buffers.moment1.as<Real>() + first;
    Real* __restrict moment2 = buffers.moment2.as<Real>() + first;
    const Real b1 = beta1, r1 = rest1, b2 = beta2, r2 = rest2, eps = epsilon;
    for (std::int64_t piece = 0; piece < count; piece += kPiece) {
      prefetch_ahead(piece, grad, weights, moment1, moment2);
      for (std::int64_t i = piece; i < std::min(piece + kPiece, count); ++i) {
        const Real g = s.grad_factor * load(grad + i) + s.l2 * weights[i];
        const Real m = b1 * moment1[i] + r1 * g;
        const Real v = b2 * moment2[i] + r2 * g * g;
        const Real denominator = std::sqrt(v) * s.inverse_sqrt_bias2 + eps;
        weights[i] = s.decay_factor * weights[i] - s.step_size * (m / denominator);
        moment1[i] = m;
        moment2[i] = v;
      }
    }
  }
};

template <class Real, class Grad>
struct Momentum {
  UpdateBuffers buffers;
  Real momentum;

  explicit Momentum(const MomentumUpdate& k)
      : buffers(k.buffers), momentum(static_cast<Real>(k.momentum)) {}

  void operator()(Real* __restrict weights, std::int64_t first, std::int64_t count,
                  const Scalars<Real> s) const {
    const Grad* __restrict grad = buffers.grad.as<Grad>() + first;
    Real* __restrict moment1 = buffers.moment1.as<Real>() + first;
    const Real kept = momentum;
    for (std::int64_t piece = 0; piece < count; piece += kPiece) {
      prefetch_ahead(piece, grad, weights, moment1);
      for (std::int64_t i = piece; i < std::min(piece + kPiece, count); ++i) {
        const Real g = s.grad_factor * load(grad + i) + s.l2 * weights[i];
        const Real m = kept * moment1[i] + g;
        weights[i] = s.decay_factor * weights[i] - s.step_size * m;
        moment1[i] = m;
      }
    }
  }
};

void split_to(std::uint16_t* __restrict value, std::uint16_t* __restrict rest,
              const float* __restrict weights, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const WeightHalves halves = split_weight(weights[i]);
    value[i] = halves.value;
    rest[i] = halves.rest;
  }
}

void publish(const UpdateBuffers& buffers, std::int64_t first, std::int64_t count) {
  if (!buffers.value) {
    return;
  }
  const float* __restrict master = buffers.master.as<float>() + first;
  if (buffers.value.dtype == DType::bf16) {
    auto* __restrict value = buffers.value.as<std::uint16_t>() + first;
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = split_weight(master[i]).value;
    }
  } else {
    auto* __restrict value = buffers.value.as<float16>() + first;
    for (std::int64_t i = 0; i < count; ++i) {
      store(value + i, master[i]);
    }
  }
}

// Of one block of units, whose weights are joined, updated and split in L1.
template <class Real, class Rule>
void update_block(const Rule& rule, std::int64_t first, std::int64_t count, const Scalars<Real> s) {
  const UpdateBuffers& buffers = rule.buffers;
  if (!buffers.rest) {
    rule(buffers.master.template as<Real>() + first, first, count, s);
    publish(buffers, first, count);
    return;
  }
  auto* value = buffers.value.template as<std::uint16_t>() + first;
  auto* rest = buffers.rest.template as<std::uint16_t>() + first;
  prefetch(value + kAhead, count);
  prefetch(rest + kAhead, count);
  if constexpr (std::is_same_v<Real, float>) {
    alignas(64) float weights[kUnitsPerBlock * kUnitSize];
    for (std::int64_t i = 0; i < count; ++i) {
      weights[i] = join_weight({value[i], rest[i]});
    }
    rule(weights, first, count, s);
    split_to(value, rest, weights, count);
  }
}

template <class Real, class Rule>
void update(ThreadPool& pool, const UpdateScalars& scalars, const Rule& rule) {
  const UpdateBuffers& buffers = rule.buffers;
  const std::int64_t total = buffers.numel();
  const auto* flags = buffers.unit_flags.template as<std::uint8_t>();
  const auto decays = [flags](std::int64_t unit) { return (flags[unit] & kUnitDecays) != 0; };
  const Scalars<Real> decaying(scalars, true), plain(scalars, false);
  pool.for_ranges(num_units(total), kUnitsPerItem, [&](std::int64_t unit, std::int64_t end) {
    while (unit < end) {
      std::int64_t stop = unit + 1;
      while (stop < end && stop < unit + kUnitsPerBlock && decays(stop) == decays(unit)) {
        ++stop;
      }
      const std::int64_t first = unit * kUnitSize;
      const std::int64_t count = std::min(stop * kUnitSize, total) - first;
      if (buffers.value && !buffers.rest) {
        prefetch(buffers.value.template as<std::uint16_t>() + first, count);
      }
      update_block<Real>(rule, first, count, decays(unit) ? decaying : plain);
      unit = stop;
    }
  });
}

template <template <class, class> class Rule, class Kernel>
void dispatch(Stream& stream, const Kernel& k) {
  if (k.scalars->skip != 0) {
    return;
  }
  ThreadPool& pool = stream.device().pool();
  if (k.buffers.moment1.dtype == DType::fp64) {
    update<double>(pool, *k.scalars, Rule<double, double>(k));
  } else if (k.buffers.grad.dtype == DType::bf16) {
    update<float>(pool, *k.scalars, Rule<float, bfloat16>(k));
  } else {
    update<float>(pool, *k.scalars, Rule<float, float>(k));
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const AdamUpdate& k) {
  dispatch<Adam>(stream, k);
}

template <>
void run(ThisCpu, Stream& stream, const MomentumUpdate& k) {
  dispatch<Momentum>(stream, k);
}

}  // namespace bloomery
