// A warp takes a head at a time, its channels across the lanes.
#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/head_norm/head_norm.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;

__device__ int lane() { return static_cast<int>(threadIdx.x) % kWarpSize; }
__device__ int warp() { return static_cast<int>(threadIdx.x) / kWarpSize; }

// 0: a query, 1: a key, 2: a value.
__device__ int kind_of(const HeadNormOptions& o, std::int64_t row) {
  const std::int64_t head = row % (o.heads_per_group + 2);
  return head < o.heads_per_group ? 0 : head == o.heads_per_group ? 1 : 2;
}

template <class T>
__device__ float inverse_rms(const T* x, int dim, float epsilon) {
  float sum = 0;
  for (int c = lane(); c < dim; c += kWarpSize) {
    sum += to_float(x[c]) * to_float(x[c]);
  }
  return rsqrtf(warp_sum(sum) / static_cast<float>(dim) + epsilon);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    forward(const __grid_constant__ HeadNormForward k, std::int64_t num_rows) {
  const HeadNormOptions& o = k.options;
  const int dim = static_cast<int>(o.head_dim), kind_value = 2;
  const float one = o.one_plus_gain ? 1.0f : 0.0f;
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + warp();
  if (row >= num_rows) {
    return;
  }
  const int kind = kind_of(o, row);
  const T* const x = static_cast<const T*>(k.x.data) + row * dim;
  T* const y = static_cast<T*>(k.y.data) + row * dim;
  const T* const gain = static_cast<const T*>(kind == 0 ? k.query_gain.data : k.key_gain.data);
  const float inverse = kind == kind_value ? 1.0f : inverse_rms(x, dim, o.epsilon);
  for (int c = lane(); c < dim; c += kWarpSize) {
    y[c] = kind == kind_value ? x[c]
                              : from_float<T>(to_float(x[c]) * inverse * (one + to_float(gain[c])));
  }
}

// One head; `sums` are this warp's, [2][dim].
template <class T>
__device__ void head_backward(const HeadNormBackward& k, std::int64_t row, float* sums) {
  const HeadNormOptions& o = k.options;
  const int dim = static_cast<int>(o.head_dim), kind = kind_of(o, row);
  const T* const x = static_cast<const T*>(k.x.data) + row * dim;
  const T* const dy = static_cast<const T*>(k.dy.data) + row * dim;
  T* const dx = k.dx.data != nullptr ? static_cast<T*>(k.dx.data) + row * dim : nullptr;
  const T* const gain = static_cast<const T*>(kind == 0 ? k.query_gain.data : k.key_gain.data);
  const float one = o.one_plus_gain ? 1.0f : 0.0f;
  float inverse = 0, mean = 0;
  if (kind < 2) {
    inverse = inverse_rms(x, dim, o.epsilon);
    for (int c = lane(); c < dim; c += kWarpSize) {
      const float normalised = to_float(x[c]) * inverse;
      sums[kind * dim + c] += to_float(dy[c]) * normalised;
      mean += to_float(dy[c]) * (one + to_float(gain[c])) * normalised;
    }
    mean = warp_sum(mean) / static_cast<float>(dim);
  }
  for (int c = lane(); dx != nullptr && c < dim; c += kWarpSize) {
    float value = to_float(dy[c]);
    if (kind < 2) {
      value = inverse * (value * (one + to_float(gain[c])) - to_float(x[c]) * inverse * mean);
    }
    dx[c] = from_float<T>(k.add ? to_float(dx[c]) + value : value);
  }
}

// A block takes kTokensPerHeadNormPartial tokens.
template <class T>
__global__ void __launch_bounds__(kThreads) backward(const __grid_constant__ HeadNormBackward k) {
  extern __shared__ float memory[];  // [warps][2][dim]
  const int dim = static_cast<int>(k.options.head_dim);
  float* const sums = memory + warp() * 2 * dim;
  for (int c = lane(); c < 2 * dim; c += kWarpSize) {
    sums[c] = 0;
  }
  const std::int64_t per_token = k.options.num_groups * (k.options.heads_per_group + 2);
  const std::int64_t begin = blockIdx.x * kTokensPerHeadNormPartial * per_token;
  const std::int64_t end =
      min(begin + kTokensPerHeadNormPartial * per_token, k.num_tokens * per_token);
  __syncwarp();
  for (std::int64_t row = begin + warp(); row < end; row += kWarps) {
    head_backward<T>(k, row, sums);
  }
  __syncthreads();
  float* const to = static_cast<float*>(k.partials.data) + std::int64_t{blockIdx.x} * 2 * dim;
  for (int c = static_cast<int>(threadIdx.x); c < 2 * dim; c += kThreads) {
    float sum = 0;
    for (int i = 0; i < kWarps; ++i) {
      sum += memory[i * 2 * dim + c];
    }
    to[c] = sum;
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const HeadNormForward& k) {
  const std::int64_t rows = k.num_tokens * k.options.num_groups * (k.options.heads_per_group + 2);
  if (rows == 0) {
    return;
  }
  dispatch_device(k.x.dtype, [&](auto tag) {
    forward<typename decltype(tag)::type>
        <<<num_blocks(rows, kWarps), kThreads, 0, cuda_stream(stream)>>>(k, rows);
    check_launch("head_norm");
  });
}

void run(OnCuda, Stream& stream, const HeadNormBackward& k) {
  if (k.num_tokens == 0) {
    return;
  }
  constexpr std::int64_t kMaxHeadDim = 512;
  check(k.options.head_dim <= kMaxHeadDim, "head_norm: head_dim ", k.options.head_dim,
        " is more than the ", kMaxHeadDim, " that CUDA kernels take");
  const auto bytes = static_cast<std::size_t>(kWarps * 2 * k.options.head_dim) * sizeof(float);
  dispatch_device(k.x.dtype, [&](auto tag) {
    backward<typename decltype(tag)::type><<<num_blocks(k.num_tokens, kTokensPerHeadNormPartial),
                                             kThreads, bytes, cuda_stream(stream)>>>(k);
    check_launch("head_norm_backward");
  });
}

}  // namespace bloomery
