#include "ops/activation/activation.h"
#include "ops/common/convert.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 8192;

template <Activation kActivation, class T>
void forward(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    store(y + i, activate<kActivation, kAccuracyFor<T>>(load(x + i)));
  }
}

template <Activation kActivation, bool kAdd, class T>
void backward(const T* grad_y, const T* x, T* grad_x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Accumulator<T> grad =
        load(grad_y + i) * activation_derivative<kActivation, kAccuracyFor<T>>(load(x + i));
    store(grad_x + i, kAdd ? load(grad_x + i) + grad : grad);
  }
}

template <Activation kActivation, class T>
void gated_forward(const T* gate, const T* up, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    store(y + i, activate<kActivation, kAccuracyFor<T>>(load(gate + i)) * load(up + i));
  }
}

template <class T>
struct GatedRow {
  const T *grad_y, *gate, *up;
  T *grad_gate, *grad_up;
};

template <Activation kActivation, bool kAdd, class T>
void gated_backward(const GatedRow<T>& row, std::int64_t count) {
  const T* __restrict__ grad_y = row.grad_y;
  const T* __restrict__ gates = row.gate;
  const T* __restrict__ ups = row.up;
  T* __restrict__ grad_gate = row.grad_gate;
  T* __restrict__ grad_up = row.grad_up;
  for (std::int64_t i = 0; i < count; ++i) {
    const Accumulator<T> grad = load(grad_y + i), gate = load(gates + i);
    const Accumulator<T> for_gate =
        grad * load(ups + i) * activation_derivative<kActivation, kAccuracyFor<T>>(gate);
    const Accumulator<T> for_up = grad * activate<kActivation, kAccuracyFor<T>>(gate);
    store(grad_gate + i, kAdd ? load(grad_gate + i) + for_gate : for_gate);
    store(grad_up + i, kAdd ? load(grad_up + i) + for_up : for_up);
  }
}

// Calls body(ActivationTag, pointer type tag) for the dtype and activation of a kernel.
template <class Body>
void dispatch(DType dtype, Activation activation, Body&& body) {
  dispatch_floating(dtype, [&](auto type) {
    dispatch_activation(activation, [&](auto tag) { body(type, tag); });
  });
}

std::int64_t rows_per_task(std::int64_t columns) {
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const ActivationForward& k) {
  dispatch(k.x.dtype, k.activation, [&](auto type, auto tag) {
    using T = typename decltype(type)::type;
    constexpr Activation kActivation = decltype(tag)::value;
    stream.device().pool().for_ranges(
        k.y.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
          forward<kActivation>(k.x.as<T>() + begin, k.y.as<T>() + begin, end - begin);
        });
  });
}

template <>
void run(ThisCpu, Stream& stream, const ActivationBackward& k) {
  dispatch(k.x.dtype, k.activation, [&](auto type, auto tag) {
    using T = typename decltype(type)::type;
    constexpr Activation kActivation = decltype(tag)::value;
    const auto body = k.add ? backward<kActivation, true, T> : backward<kActivation, false, T>;
    stream.device().pool().for_ranges(k.grad_x.numel(), kGrain,
                                      [&](std::int64_t begin, std::int64_t end) {
                                        body(k.grad_y.as<T>() + begin, k.x.as<T>() + begin,
                                             k.grad_x.as<T>() + begin, end - begin);
                                      });
  });
}

template <>
void run(ThisCpu, Stream& stream, const GatedForward& k) {
  const std::int64_t width = k.y.columns();
  dispatch(k.x.dtype, k.activation, [&](auto type, auto tag) {
    using T = typename decltype(type)::type;
    constexpr Activation kActivation = decltype(tag)::value;
    stream.device().pool().for_ranges(
        k.y.rows(), rows_per_task(width), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* gate = k.x.as<T>() + row * 2 * width;
            gated_forward<kActivation>(gate, gate + width, k.y.as<T>() + row * width, width);
          }
        });
  });
}

template <>
void run(ThisCpu, Stream& stream, const GatedBackward& k) {
  const std::int64_t width = k.grad_y.columns();
  dispatch(k.x.dtype, k.activation, [&](auto type, auto tag) {
    using T = typename decltype(type)::type;
    constexpr Activation kActivation = decltype(tag)::value;
    const auto body =
        k.add ? gated_backward<kActivation, true, T> : gated_backward<kActivation, false, T>;
    stream.device().pool().for_ranges(
        k.grad_y.rows(), rows_per_task(width), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* gate = k.x.as<T>() + row * 2 * width;
            T* grad_gate = k.grad_x.as<T>() + row * 2 * width;
            body({k.grad_y.as<T>() + row * width, gate, gate + width, grad_gate, grad_gate + width},
                 width);
          }
        });
  });
}

}  // namespace bloomery
