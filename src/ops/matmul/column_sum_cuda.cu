#include <algorithm>

#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

constexpr int kRowLanes = 8;         // warps of a block of the first stage, one row each
constexpr int kUnrolled = 4;         // rows that a warp has in flight
constexpr int kTargetBlocks = 2048;  // of the first stage: several per multiprocessor
constexpr int kFinalLanes = 32;      // warps of a block of the second stage

// partial[blockIdx.y, column] = sum over the block's rows, kCount neighbouring columns per thread.
template <int kCount, class T>
__global__ void partial_sums(const T* x, float* partial, std::int64_t m, std::int64_t n,
                             std::int64_t rows_per_block) {
  __shared__ float shared[kRowLanes][kWarpSize * kCount];
  const int lane = threadIdx.x, row_lane = threadIdx.y;
  const std::int64_t column = (std::int64_t{blockIdx.x} * kWarpSize + lane) * kCount;
  const std::int64_t first = blockIdx.y * rows_per_block;
  const std::int64_t last = min(m, first + rows_per_block);
  float sums[kCount] = {};
  if (column < n) {
    std::int64_t row = first + row_lane;
    for (; row + (kUnrolled - 1) * kRowLanes < last; row += kUnrolled * kRowLanes) {
      Pack<T, kCount> packs[kUnrolled];
#pragma unroll
      for (int u = 0; u < kUnrolled; ++u) {
        packs[u] = load_pack<kCount>(x + (row + u * kRowLanes) * n + column);
      }
#pragma unroll
      for (int u = 0; u < kUnrolled; ++u) {
#pragma unroll
        for (int j = 0; j < kCount; ++j) {
          sums[j] += to_float(packs[u][j]);
        }
      }
    }
    for (; row < last; row += kRowLanes) {
      const Pack<T, kCount> pack = load_pack<kCount>(x + row * n + column);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        sums[j] += to_float(pack[j]);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    shared[row_lane][j * kWarpSize + lane] = sums[j];
  }
  __syncthreads();
  if (row_lane == 0 && column < n) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float total = 0;
      for (int r = 0; r < kRowLanes; ++r) {
        total += shared[r][j * kWarpSize + lane];
      }
      partial[blockIdx.y * n + column + j] = total;
    }
  }
}

// sums[column] (+)= sum over the parts, in a fixed order.
__global__ void final_sums(const float* partial, float* sums, int num_parts, std::int64_t n,
                           bool add) {
  __shared__ float shared[kFinalLanes][kWarpSize];
  const int lane = threadIdx.x, part_lane = threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarpSize + lane;
  float sum = 0;
  if (column < n) {
    for (int part = part_lane; part < num_parts; part += kFinalLanes) {
      sum += partial[part * n + column];
    }
  }
  shared[part_lane][lane] = sum;
  __syncthreads();
  if (part_lane == 0 && column < n) {
    float total = add ? sums[column] : 0.0f;
    for (int r = 0; r < kFinalLanes; ++r) {
      total += shared[r][lane];
    }
    sums[column] = total;
  }
}

template <int kCount, class T>
void column_sum(Stream& stream, const ColumnSum& k) {
  const std::int64_t n = k.sums.numel(), m = k.x.rows();
  const unsigned strips = num_blocks(n, std::int64_t{kWarpSize} * kCount);
  const std::int64_t wanted = std::max<std::int64_t>(1, kTargetBlocks / strips);
  const std::int64_t step = kRowLanes * kUnrolled;
  const std::int64_t rows =
      std::max<std::int64_t>(1, (m + wanted * step - 1) / (wanted * step)) * step;
  const unsigned parts = num_blocks(m, rows);
  const Tensor partial = Tensor::empty(stream, DType::fp32, {parts, n});
  auto* partial_data = static_cast<float*>(partial.data());
  partial_sums<kCount, T>
      <<<dim3(strips, parts), dim3(kWarpSize, kRowLanes), 0, cuda_stream(stream)>>>(
          k.x.as<T>(), partial_data, m, n, rows);
  check_launch("partial_sums");
  final_sums<<<num_blocks(n, kWarpSize), dim3(kWarpSize, kFinalLanes), 0, cuda_stream(stream)>>>(
      partial_data, k.sums.as<float>(), static_cast<int>(parts), n, k.add);
  check_launch("final_sums");
}

}  // namespace

void run(OnCuda, Stream& stream, const ColumnSum& k) {
  check(k.sums.dtype == DType::fp32 && k.x.columns() == k.sums.numel(), "column_sum: ", k.x.dtype,
        k.x.shape, " cannot be summed into ", k.sums.dtype, k.sums.shape);
  if (k.sums.numel() == 0) {
    return;
  }
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed =
        k.x.columns() % kPackSize<T> == 0 && reinterpret_cast<std::uintptr_t>(k.x.data) % 16 == 0;
    packed ? column_sum<kPackSize<T>, T>(stream, k) : column_sum<1, T>(stream, k);
  });
}

}  // namespace bloomery
