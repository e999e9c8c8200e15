#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/matmul/column_sum_cuda.cuh"
#include "ops/matmul/epilogue_cuda.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

template <class T, class Bias>
__global__ void add_bias(T* d, const Bias* bias, std::int64_t count, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    d[i] = from_float<T>(to_float(d[i]) + to_float(bias[i % n]));
  }
}

// A block takes the rows of one part of the column sums, in a strip of columns.
template <Activation kActivation, int kCount, class T>
__global__ void multiply_by_derivative(T* d, const T* at, T* activated, float* column_sums,
                                       std::int64_t m, std::int64_t n,
                                       std::int64_t rows_per_block) {
  using namespace column_sum;
  const std::int64_t column = (std::int64_t{blockIdx.x} * kWarpSize + threadIdx.x) * kCount;
  const std::int64_t first = blockIdx.y * rows_per_block;
  const bool inside = column < n;
  float sums[kCount] = {};
  for_rows(first, inside ? min(m, first + rows_per_block) : first, [&](auto in_flight, auto row) {
    Pack<T, kCount> grads[in_flight()], points[in_flight()];
#pragma unroll
    for (int u = 0; u < in_flight(); ++u) {
      grads[u] = load_pack<kCount>(d + (row + u * kRowLanes) * n + column);
      points[u] = load_pack<kCount>(at + (row + u * kRowLanes) * n + column);
    }
#pragma unroll
    for (int u = 0; u < in_flight(); ++u) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float slope =
            activation_derivative<kActivation, kAccuracyFor<T>>(to_float(points[u][j]));
        grads[u][j] = from_float<T>(to_float(grads[u][j]) * slope);
        sums[j] += to_float(grads[u][j]);
      }
      store_pack(d + (row + u * kRowLanes) * n + column, grads[u]);
      if (activated != nullptr) {
#pragma unroll
        for (int j = 0; j < kCount; ++j) {
          points[u][j] =
              from_float<T>(activate<kActivation, kAccuracyFor<T>>(to_float(points[u][j])));
        }
        store_pack(activated + (row + u * kRowLanes) * n + column, points[u]);
      }
    }
  });
  if (column_sums != nullptr) {
    write_block_sums(sums, column_sums + blockIdx.y * n + column, inside);
  }
}

}  // namespace

void add_bias_cuda(Stream& stream, const View& d, const ConstView& bias) {
  const std::int64_t count = d.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(d.dtype, [&](auto to) {
    dispatch_device(bias.dtype, [&](auto from) {
      using T = typename decltype(to)::type;
      using Bias = typename decltype(from)::type;
      add_bias<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
          d.as<T>(), bias.as<Bias>(), count, bias.numel());
      check_launch("add_bias");
    });
  });
}

void multiply_by_derivative_cuda(Stream& stream, const Matmul& k, const MatmulSizes& sizes) {
  const auto [m, n, depth] = sizes;
  if (n == 0) {
    return;
  }
  const std::int64_t parts = num_column_sum_parts(stream, m, n);
  check(!k.column_sums || k.column_sums.rows() == parts, "matmul: column sums of ", m, "x", n,
        " come in ", parts, " parts, not ", k.column_sums.shape);
  dispatch_device(k.d.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    dispatch_activation(k.derivative, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      const bool packed = n % kPackSize<T> == 0 &&
                          reinterpret_cast<std::uintptr_t>(k.d.data) % 16 == 0 &&
                          reinterpret_cast<std::uintptr_t>(k.activated.data) % 16 == 0 &&
                          reinterpret_cast<std::uintptr_t>(k.derivative_at.data) % 16 == 0;
      const int count = packed ? kPackSize<T> : 1;
      const auto kernel = packed ? multiply_by_derivative<kActivation, kPackSize<T>, T>
                                 : multiply_by_derivative<kActivation, 1, T>;
      const dim3 grid(num_blocks(n, std::int64_t{kWarpSize} * count), static_cast<unsigned>(parts));
      kernel<<<grid, dim3(kWarpSize, column_sum::kRowLanes), 0, cuda_stream(stream)>>>(
          k.d.as<T>(), k.derivative_at.as<T>(), k.activated.as<T>(), k.column_sums.as<float>(), m,
          n, (m + parts - 1) / parts);
    });
  });
  check_launch("multiply_by_derivative");
}

}  // namespace bloomery
