#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/pooling/pooling.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

__device__ std::int64_t thread_number() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

// A thread writes one element of y.
template <class Real>
__global__ void first_tokens(const Real* x, Real* y, std::int64_t rows, std::int64_t columns,
                             std::int64_t count, std::int64_t length, std::int64_t first_token) {
  const std::int64_t i = thread_number();
  if (i >= count) {
    return;
  }
  const std::int64_t row = i / columns * length - first_token;
  y[i] = 0 <= row && row < rows ? x[row * columns + i % columns] : from_float<Real>(0.0f);
}

// A thread writes one element of grad_x.
template <class Real>
__global__ void first_tokens_gradient(const Real* grad_y, Real* grad_x, std::int64_t columns,
                                      std::int64_t count, std::int64_t length,
                                      std::int64_t first_token, bool add) {
  const std::int64_t i = thread_number();
  if (i >= count) {
    return;
  }
  const std::int64_t token = i / columns + first_token;
  if (token % length == 0) {
    const float grad = to_float(grad_y[token / length * columns + i % columns]);
    grad_x[i] = from_float<Real>(add ? to_float(grad_x[i]) + grad : grad);
  } else if (!add) {
    grad_x[i] = from_float<Real>(0.0f);
  }
}

template <class Real>
__global__ void tanh_forward(const Real* x, Real* y, std::int64_t count) {
  const std::int64_t i = thread_number();
  if (i < count) {
    y[i] = from_float<Real>(tanhf(to_float(x[i])));
  }
}

template <class Real>
__global__ void tanh_backward(const Real* grad_y, const Real* y, Real* grad_x, std::int64_t count,
                              bool add) {
  const std::int64_t i = thread_number();
  if (i < count) {
    const float value = to_float(y[i]);
    const float grad = to_float(grad_y[i]) * (1.0f - value * value);
    grad_x[i] = from_float<Real>(add ? to_float(grad_x[i]) + grad : grad);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const FirstTokens& k) {
  const std::int64_t count = k.y.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.y.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    first_tokens<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.x.as<Real>(), k.y.as<Real>(), k.x.shape[0], k.y.shape[1], count, k.length, k.first_token);
    check_launch("first_tokens");
  });
}

void run(OnCuda, Stream& stream, const FirstTokensGradient& k) {
  const std::int64_t count = k.grad_x.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.grad_x.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    first_tokens_gradient<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.grad_y.as<Real>(), k.grad_x.as<Real>(), k.grad_x.shape[1], count, k.length, k.first_token,
        k.add);
    check_launch("first_tokens_gradient");
  });
}

void run(OnCuda, Stream& stream, const TanhForward& k) {
  const std::int64_t count = k.y.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.y.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    tanh_forward<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.x.as<Real>(), k.y.as<Real>(), count);
    check_launch("tanh");
  });
}

void run(OnCuda, Stream& stream, const TanhBackward& k) {
  const std::int64_t count = k.y.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.y.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    tanh_backward<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.grad_y.as<Real>(), k.y.as<Real>(), k.grad_x.as<Real>(), count, k.add);
    check_launch("tanh_backward");
  });
}

}  // namespace bloomery
