#include "device/launch_cuda.cuh"
#include "ops/activation/activation.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

template <Activation kActivation, int kCount, class T>
__global__ void forward(const T* x, T* y, std::int64_t count) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (i >= count) {
    return;
  }
  const Pack<T, kCount> in = load_pack<kCount>(x + i);
  Pack<T, kCount> out;
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    out[j] = from_float<T>(activate<kActivation>(to_float(in[j])));
  }
  store_pack(y + i, out);
}

template <Activation kActivation, int kCount, class T>
__global__ void backward(const T* grad_y, const T* x, T* grad_x, std::int64_t count, bool add) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (i >= count) {
    return;
  }
  const Pack<T, kCount> grad = load_pack<kCount>(grad_y + i), in = load_pack<kCount>(x + i);
  Pack<T, kCount> out;
  if (add) {
    out = load_pack<kCount>(grad_x + i);
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float value = to_float(grad[j]) * activation_derivative<kActivation>(to_float(in[j]));
    out[j] = from_float<T>(add ? to_float(out[j]) + value : value);
  }
  store_pack(grad_x + i, out);
}

// Pack i of the output; packs never straddle two rows. The gate is at 2 * row * width + column.
template <Activation kActivation, int kCount, class T>
__global__ void gated_forward(const T* x, T* y, std::int64_t count, std::int64_t width) {
  let_next_kernel_start();
  wait_for_kernels_before();
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (i >= count) {
    return;
  }
  const T* from = x + i + i / width * width;
  const Pack<T, kCount> gate = load_pack<kCount>(from), up = load_pack<kCount>(from + width);
  Pack<T, kCount> out;
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    out[j] = from_float<T>(activate<kActivation>(to_float(gate[j])) * to_float(up[j]));
  }
  store_pack(y + i, out);
}

template <Activation kActivation, int kCount, class T>
__global__ void gated_backward(const T* grad_y, const T* x, T* grad_x, std::int64_t count,
                               std::int64_t width, bool add) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (i >= count) {
    return;
  }
  const std::int64_t offset = i + i / width * width;
  const Pack<T, kCount> grad = load_pack<kCount>(grad_y + i);
  const Pack<T, kCount> gate = load_pack<kCount>(x + offset);
  const Pack<T, kCount> up = load_pack<kCount>(x + offset + width);
  Pack<T, kCount> grad_gate, grad_up;
  if (add) {
    grad_gate = load_pack<kCount>(grad_x + offset);
    grad_up = load_pack<kCount>(grad_x + offset + width);
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float upstream = to_float(grad[j]), at = to_float(gate[j]);
    const float for_gate = upstream * to_float(up[j]) * activation_derivative<kActivation>(at);
    const float for_up = upstream * activate<kActivation>(at);
    grad_gate[j] = from_float<T>(add ? to_float(grad_gate[j]) + for_gate : for_gate);
    grad_up[j] = from_float<T>(add ? to_float(grad_up[j]) + for_up : for_up);
  }
  store_pack(grad_x + offset, grad_gate);
  store_pack(grad_x + offset + width, grad_up);
}

template <class... Pointers>
bool aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// Calls body(type, activation, pack size) with 16-byte packs when everything is aligned.
template <class Body>
void dispatch(DType dtype, Activation activation, bool packed, Body&& body) {
  dispatch_device(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    dispatch_activation(activation, [&](auto tag) {
      if (packed) {
        body(type, tag, std::integral_constant<int, kPackSize<T>>{});
      } else {
        body(type, tag, std::integral_constant<int, 1>{});
      }
    });
  });
}

bool whole_packs(std::int64_t count, DType dtype) {
  return count * static_cast<std::int64_t>(size_of(dtype)) % 16 == 0;
}

}  // namespace

void run(OnCuda, Stream& stream, const ActivationForward& k) {
  const std::int64_t count = k.y.numel();
  const bool packed = whole_packs(count, k.x.dtype) && aligned(k.x.as<char>(), k.y.as<char>());
  dispatch(k.x.dtype, k.activation, packed, [&](auto type, auto tag, auto pack) {
    using T = typename decltype(type)::type;
    forward<decltype(tag)::value, pack()>
        <<<num_blocks(count, kThreads * pack()), kThreads, 0, cuda_stream(stream)>>>(
            k.x.as<T>(), k.y.as<T>(), count);
  });
  check_launch("activation forward");
}

void run(OnCuda, Stream& stream, const ActivationBackward& k) {
  const std::int64_t count = k.grad_x.numel();
  const bool packed = whole_packs(count, k.x.dtype) &&
                      aligned(k.grad_y.as<char>(), k.x.as<char>(), k.grad_x.as<char>());
  dispatch(k.x.dtype, k.activation, packed, [&](auto type, auto tag, auto pack) {
    using T = typename decltype(type)::type;
    backward<decltype(tag)::value, pack()>
        <<<num_blocks(count, kThreads * pack()), kThreads, 0, cuda_stream(stream)>>>(
            k.grad_y.as<T>(), k.x.as<T>(), k.grad_x.as<T>(), count, k.add);
  });
  check_launch("activation backward");
}

void run(OnCuda, Stream& stream, const GatedForward& k) {
  const std::int64_t count = k.y.numel(), width = k.y.columns();
  const bool packed = whole_packs(width, k.x.dtype) && aligned(k.x.as<char>(), k.y.as<char>());
  dispatch(k.x.dtype, k.activation, packed, [&](auto type, auto tag, auto pack) {
    using T = typename decltype(type)::type;
    launch_kernel(stream, gated_forward<decltype(tag)::value, pack(), T>,
                  dim3(num_blocks(count, kThreads * pack())), kThreads, k.x.as<T>(), k.y.as<T>(),
                  count, width);
  });
}

void run(OnCuda, Stream& stream, const GatedBackward& k) {
  const std::int64_t count = k.grad_y.numel(), width = k.grad_y.columns();
  const bool packed = whole_packs(width, k.x.dtype) &&
                      aligned(k.grad_y.as<char>(), k.x.as<char>(), k.grad_x.as<char>());
  dispatch(k.x.dtype, k.activation, packed, [&](auto type, auto tag, auto pack) {
    using T = typename decltype(type)::type;
    gated_backward<decltype(tag)::value, pack()>
        <<<num_blocks(count, kThreads * pack()), kThreads, 0, cuda_stream(stream)>>>(
            k.grad_y.as<T>(), k.x.as<T>(), k.grad_x.as<T>(), count, width, k.add);
  });
  check_launch("gated activation backward");
}

}  // namespace bloomery
