// The sums of the columns of a strip of rows, by a block of warps that each take every so-many-th
// row: neighbouring threads of a warp have neighbouring columns.
#pragma once

#include "device/warp.cuh"

namespace bloomery::column_sum {

constexpr int kRowLanes = 8;  // warps of a block
constexpr int kUnrolled = 4;  // rows that a warp has in flight

// Calls body for this thread's rows of [first, last), kUnrolled at a time where there
// are as many: body(integral_constant<int, rows in flight>, first of them), kRowLanes apart.
template <class Body>
__device__ __forceinline__ void for_rows(std::int64_t first, std::int64_t last, Body&& body) {
  std::int64_t row = first + threadIdx.y;
  for (; row + (kUnrolled - 1) * kRowLanes < last; row += kUnrolled * kRowLanes) {
    body(std::integral_constant<int, kUnrolled>{}, row);
  }
  for (; row < last; row += kRowLanes) {
    body(std::integral_constant<int, 1>{}, row);
  }
}

// to[column..] = the sums of the block's warps, in order. All threads of the block call it; those
// with `inside` have columns.
template <int kCount>
__device__ __forceinline__ void write_block_sums(const float (&sums)[kCount], float* to,
                                                 bool inside) {
  __shared__ float shared[kRowLanes][kWarpSize * kCount];
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    shared[threadIdx.y][j * kWarpSize + threadIdx.x] = sums[j];
  }
  __syncthreads();
  if (threadIdx.y == 0 && inside) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float total = 0;
      for (int r = 0; r < kRowLanes; ++r) {
        total += shared[r][j * kWarpSize + threadIdx.x];
      }
      to[j] = total;
    }
  }
}

}  // namespace bloomery::column_sum
