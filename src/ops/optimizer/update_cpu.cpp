#include <algorithm>
#include <utility>

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

// Elements of one unit, or of several with the same flags.
template <class Element, class Real, class Grad, class... State>
void update_elements(const Element element, const ElementScalars<Real> s, std::int64_t count,
                     Real* __restrict weights, const Grad* __restrict grad,
                     State* __restrict... state) {
  for (std::int64_t piece = 0; piece < count; piece += kPiece) {
    prefetch_ahead(piece, grad, weights, state...);
    for (std::int64_t i = piece; i < std::min(piece + kPiece, count); ++i) {
      const Real g = s.grad_factor * load(grad + i) + s.l2 * weights[i];
      weights[i] = element(s, weights[i], g, state[i]...);
    }
  }
}

// A rule for elements [first, first + count), all with the same flags; `weights` are those
// elements' master weights.
template <class Rule, class Real, class Grad>
struct RangeUpdate {
  const UpdateBuffers& buffers;
  typename Rule::template Element<Real> element;

  void operator()(Real* weights, std::int64_t first, std::int64_t count,
                  const ElementScalars<Real> s) const {
    [&]<std::size_t... kTensors>(std::index_sequence<kTensors...>) {
      update_elements(element, s, count, weights, buffers.grad.as<Grad>() + first,
                      (buffers.state[kTensors].template as<Real>() + first)...);
    }
    (std::make_index_sequence<std::size(Rule::kState)>());
  }
};

void split_to(std::uint16_t* __restrict value, std::uint16_t* __restrict low,
              const float* __restrict weights, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const SplitMaster halves = split_weight(weights[i]);
    value[i] = halves.value;
    low[i] = halves.low;
  }
}

void publish(const UpdateBuffers& buffers, std::int64_t first, std::int64_t count) {
  if (buffers.form == WeightForm::exact) {
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
void update_block(const Rule& rule, std::int64_t first, std::int64_t count,
                  const ElementScalars<Real> s) {
  const UpdateBuffers& buffers = rule.buffers;
  if (buffers.form != WeightForm::split) {
    rule(buffers.master.template as<Real>() + first, first, count, s);
    publish(buffers, first, count);
    return;
  }
  auto* value = buffers.value.template as<std::uint16_t>() + first;
  auto* low = buffers.low.template as<std::uint16_t>() + first;
  prefetch(value + kAhead, count);
  prefetch(low + kAhead, count);
  if constexpr (std::is_same_v<Real, float>) {
    alignas(64) float weights[kUnitsPerBlock * kUnitSize];
    for (std::int64_t i = 0; i < count; ++i) {
      weights[i] = join_weight({value[i], low[i]});
    }
    rule(weights, first, count, s);
    split_to(value, low, weights, count);
  }
}

template <class Real, class Rule>
void update(ThreadPool& pool, const UpdateScalars& scalars, const Rule& rule) {
  const UpdateBuffers& buffers = rule.buffers;
  const std::int64_t total = buffers.numel();
  const auto* flags = buffers.unit_flags.template as<std::uint8_t>();
  const auto decays = [flags](std::int64_t unit) { return (flags[unit] & kUnitDecays) != 0; };
  const ElementScalars<Real> decaying(scalars, true), plain(scalars, false);
  pool.for_ranges(num_units(total), kUnitsPerItem, [&](std::int64_t unit, std::int64_t end) {
    while (unit < end) {
      std::int64_t stop = unit + 1;
      while (stop < end && stop < unit + kUnitsPerBlock && decays(stop) == decays(unit)) {
        ++stop;
      }
      const std::int64_t first = unit * kUnitSize;
      const std::int64_t count = std::min(stop * kUnitSize, total) - first;
      if (buffers.form == WeightForm::master) {
        prefetch(buffers.value.template as<std::uint16_t>() + first, count);
      }
      update_block<Real>(rule, first, count, decays(unit) ? decaying : plain);
      unit = stop;
    }
  });
}

template <class Rule>
void dispatch(Stream& stream, const Update& k, const Rule& rule) {
  ThreadPool& pool = stream.device().pool();
  const auto start = [&]<class Real, class Grad>(Real, Grad) {
    update<Real>(
        pool, *k.scalars,
        RangeUpdate<Rule, Real, Grad>{k.buffers, typename Rule::template Element<Real>(rule)});
  };
  if (k.buffers.state[0].dtype == DType::fp64) {
    start(double(), double());
  } else if (k.buffers.grad.dtype == DType::bf16) {
    start(float(), bfloat16());
  } else {
    start(float(), float());
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const Update& k) {
  if (k.scalars->skip == 0) {
    std::visit([&](const auto& rule) { dispatch(stream, k, rule); }, k.rule);
  }
}

}  // namespace bloomery
