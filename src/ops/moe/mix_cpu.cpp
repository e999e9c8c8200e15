#include <algorithm>

#include "ops/common/convert.h"
#include "ops/common/row_lanes.h"
#include "ops/moe/mix_weights.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements per item of work

// Calls body(token, its weights).
template <class T, class Body>
void for_tokens(Stream& stream, const ConstView& logits, MixKind kind, std::int64_t columns,
                const Body& body) {
  const std::int64_t per_token = logits.columns();
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  stream.device().pool().for_ranges(
      logits.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) {
          const T* const l = logits.as<T>() + t * per_token;
          body(t, moe::mix_weights(kind, load(l), load(l + per_token - 1)));
        }
      });
}

// y (+)= factor * x
template <class T, class Part, class Real>
void put(T* y, const Part& part, const Lanes<Real>& value, bool add) {
  store_lanes(y, add ? value + load_lanes(y, part) : value, part);
}

template <class T>
void backward(Stream& stream, const MixBackward& k) {
  using Real = Accumulator<T>;
  const std::int64_t columns = k.a.columns(), per_token = k.logits.columns();
  for_tokens<T>(stream, k.logits, k.kind, columns, [&](std::int64_t t, const auto& w) {
    const std::int64_t at = t * columns;
    Lanes<Real> sum{};  // of dL/dy times what grows with the weight of b
    for_lanes<Real>(columns, [&](std::int64_t c, auto part) {
      const Lanes<Real> grad = load_lanes(k.grad.as<T>() + at + c, part);
      const Lanes<Real> b = load_lanes(k.b.as<T>() + at + c, part);
      Lanes<Real> rise = b;
      if (k.kind == MixKind::softmax) {
        rise -= load_lanes(k.a.as<T>() + at + c, part);
      }
      sum += grad * rise;
      put<T, decltype(part), Real>(k.grad_a.as<T>() + at + c, part, w.a * grad, k.add_a);
      put<T, decltype(part), Real>(k.grad_b.as<T>() + at + c, part, w.b * grad, k.add_b);
    });
    const Real slope = w.slope * sum_of_lanes<Real>(sum);
    T* const to = k.grad_logits.as<T>() + t * per_token;
    for (std::int64_t j = 0; j < per_token; ++j) {
      const Real value = j + 1 == per_token ? slope : -slope;
      store(to + j, k.add_logits ? load(to + j) + value : value);
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const MixForward& k) {
  const std::int64_t columns = k.a.columns();
  dispatch_floating(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Real = Accumulator<T>;
    for_tokens<T>(stream, k.logits, k.kind, columns, [&](std::int64_t t, const auto& w) {
      for_lanes<Real>(columns, [&](std::int64_t c, auto part) {
        const std::int64_t at = t * columns + c;
        store_lanes(
            k.y.as<T>() + at,
            w.a * load_lanes(k.a.as<T>() + at, part) + w.b * load_lanes(k.b.as<T>() + at, part),
            part);
      });
    });
  });
}

template <>
void run(ThisCpu, Stream& stream, const MixBackward& k) {
  dispatch_floating(k.a.dtype,
                    [&](auto tag) { backward<typename decltype(tag)::type>(stream, k); });
}

}  // namespace bloomery
