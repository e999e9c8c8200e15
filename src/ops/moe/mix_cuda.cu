#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/moe/mix_weights.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;

template <class T>
__device__ __forceinline__ moe::MixWeights<float> weights_of(const T* logits, std::int64_t t,
                                                             MixKind kind) {
  const int per_token = kind == MixKind::softmax ? 2 : 1;
  const T* const own = logits + t * per_token;
  return moe::mix_weights(kind, to_float(own[0]), to_float(own[per_token - 1]));
}

// A warp per token.
template <class T>
__global__ void mix_forward(const T* a, const T* b, const T* logits, T* y, std::int64_t tokens,
                            int columns, MixKind kind) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (t >= tokens) {
    return;
  }
  const auto w = weights_of(logits, t, kind);
  for (int c = threadIdx.x % kWarpSize; c < columns; c += kWarpSize) {
    const std::int64_t at = t * columns + c;
    y[at] = from_float<T>(w.a * to_float(a[at]) + w.b * to_float(b[at]));
  }
}

template <class T>
struct Backward {
  const T *grad, *a, *b, *logits;
  T *grad_a, *grad_b, *grad_logits;
  std::int64_t tokens;
  int columns;
  bool add_a, add_b, add_logits;
  MixKind kind;
};

template <class T>
__device__ __forceinline__ void put(T& to, float value, bool add) {
  to = from_float<T>(add ? to_float(to) + value : value);
}

template <class T>
__global__ void mix_backward(Backward<T> k) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (t >= k.tokens) {
    return;
  }
  const auto w = weights_of(k.logits, t, k.kind);
  const bool softmax = k.kind == MixKind::softmax;
  const int lane = threadIdx.x % kWarpSize;
  float sum = 0;
  for (int c = lane; c < k.columns; c += kWarpSize) {
    const std::int64_t at = t * k.columns + c;
    const float grad = to_float(k.grad[at]);
    sum += grad * (to_float(k.b[at]) - (softmax ? to_float(k.a[at]) : 0.0f));
    put(k.grad_a[at], w.a * grad, k.add_a);
    put(k.grad_b[at], w.b * grad, k.add_b);
  }
  const float slope = w.slope * warp_sum(sum);
  if (lane == 0) {
    T* const to = k.grad_logits + t * (softmax ? 2 : 1);
    put(to[softmax ? 1 : 0], slope, k.add_logits);
    if (softmax) {
      put(to[0], -slope, k.add_logits);
    }
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const MixForward& k) {
  const std::int64_t tokens = k.logits.rows();
  dispatch_device(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    mix_forward<T><<<num_blocks(tokens, kWarps), kThreads, 0, cuda_stream(stream)>>>(
        k.a.as<T>(), k.b.as<T>(), k.logits.as<T>(), k.y.as<T>(), tokens,
        static_cast<int>(k.a.columns()), k.kind);
    check_launch("mix_forward");
  });
}

void run(OnCuda, Stream& stream, const MixBackward& k) {
  const std::int64_t tokens = k.logits.rows();
  dispatch_device(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    mix_backward<T><<<num_blocks(tokens, kWarps), kThreads, 0, cuda_stream(stream)>>>(
        {k.grad.as<T>(), k.a.as<T>(), k.b.as<T>(), k.logits.as<T>(), k.grad_a.as<T>(),
         k.grad_b.as<T>(), k.grad_logits.as<T>(), tokens, static_cast<int>(k.a.columns()), k.add_a,
         k.add_b, k.add_logits, k.kind});
    check_launch("mix_backward");
  });
}

}  // namespace bloomery
