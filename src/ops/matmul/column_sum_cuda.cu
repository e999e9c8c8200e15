#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/matmul/column_sum_cuda.cuh"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

using namespace column_sum;

constexpr int kFinalLanes = 32;    // warps of a block of the second stage
constexpr int kFewRows = 1 << 10;  // that the second stage sums at once

// partial[blockIdx.y, column] = sum over the block's rows, kCount neighbouring columns per thread.
template <int kCount, class T>
__global__ void partial_sums(const T* x, float* partial, std::int64_t m, std::int64_t n,
                             std::int64_t rows_per_block) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * kWarpSize + threadIdx.x) * kCount;
  const std::int64_t first = blockIdx.y * rows_per_block;
  const bool inside = column < n;
  float sums[kCount] = {};
  for_rows(first, inside ? min(m, first + rows_per_block) : first, [&](auto in_flight, auto row) {
    Pack<T, kCount> packs[in_flight()];
#pragma unroll
    for (int u = 0; u < in_flight(); ++u) {
      packs[u] = load_pack<kCount>(x + (row + u * kRowLanes) * n + column);
    }
#pragma unroll
    for (int u = 0; u < in_flight(); ++u) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        sums[j] += to_float(packs[u][j]);
      }
    }
  });
  write_block_sums(sums, partial + blockIdx.y * n + column, inside);
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

void sum_parts(Stream& stream, const float* partial, std::int64_t num_parts, const ColumnSum& k) {
  const std::int64_t n = k.sums.numel();
  final_sums<<<num_blocks(n, kWarpSize), dim3(kWarpSize, kFinalLanes), 0, cuda_stream(stream)>>>(
      partial, k.sums.as<float>(), static_cast<int>(num_parts), n, k.add);
  check_launch("final_sums");
}

template <int kCount, class T>
void sum_columns(Stream& stream, const ColumnSum& k) {
  const std::int64_t n = k.sums.numel(), m = k.x.rows();
  const std::int64_t parts = num_column_sum_parts(stream, m, n);
  const Tensor partial = Tensor::empty(stream, DType::fp32, {parts, n});
  auto* partial_data = static_cast<float*>(partial.data());
  partial_sums<kCount, T>
      <<<dim3(num_blocks(n, std::int64_t{kWarpSize} * kCount), static_cast<unsigned>(parts)),
         dim3(kWarpSize, kRowLanes), 0, cuda_stream(stream)>>>(k.x.as<T>(), partial_data, m, n,
                                                               (m + parts - 1) / parts);
  check_launch("partial_sums");
  sum_parts(stream, partial_data, parts, k);
}

}  // namespace

void run(OnCuda, Stream& stream, const ColumnSum& k) {
  check(k.sums.dtype == DType::fp32 && k.x.columns() == k.sums.numel(), "column_sum: ", k.x.dtype,
        k.x.shape, " cannot be summed into ", k.sums.dtype, k.sums.shape);
  if (k.sums.numel() == 0) {
    return;
  }
  if (k.x.dtype == DType::fp32 && k.x.rows() <= kFewRows) {
    return sum_parts(stream, k.x.as<float>(), k.x.rows(), k);
  }
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed =
        k.x.columns() % kPackSize<T> == 0 && reinterpret_cast<std::uintptr_t>(k.x.data) % 16 == 0;
    packed ? sum_columns<kPackSize<T>, T>(stream, k) : sum_columns<1, T>(stream, k);
  });
}

}  // namespace bloomery
