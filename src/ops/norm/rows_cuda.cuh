// What the CUDA kernels of the norms share. A row lies in the registers of one warp (up to 1024
// columns) or of one block (up to 16384), in octets; other widths go through memory by element.
#pragma once

#include "ops/common/dispatch_cuda.cuh"
#include "ops/common/octet.cuh"
#include "ops/dropout/mask_cuda.cuh"
#include "ops/norm/norm.h"

namespace bloomery {

inline constexpr int kMaxOctets = 4;           // per thread
inline constexpr int kMaxThreadsPerRow = 512;  // so that a thread may have 128 registers
inline constexpr std::int64_t kWarpColumns = kWarpSize * kMaxOctets * kOctet;
inline constexpr std::int64_t kBlockColumns = kMaxThreadsPerRow * kMaxOctets * kOctet;

// Threads of a block that holds a row of this many columns, four octets each.
inline int threads_per_row(std::int64_t columns) {
  const std::int64_t per_warp = kWarpColumns;
  return static_cast<int>((columns + per_warp - 1) / per_warp) * kWarpSize;
}

// The threads that hold one row together: a warp or the block.
template <bool kWholeBlock>
struct RowTeam {
  __device__ static int rows_per_block() { return kWholeBlock ? 1 : blockDim.x / kWarpSize; }
  __device__ static int row_of_block() { return kWholeBlock ? 0 : threadIdx.x / kWarpSize; }
  __device__ static int lane() { return kWholeBlock ? threadIdx.x : threadIdx.x % kWarpSize; }
  __device__ static int width() { return kWholeBlock ? blockDim.x : kWarpSize; }
  // First column of this thread's octet number `i`.
  __device__ static int column(int i) { return (lane() + i * width()) * kOctet; }

  // Both sums, the same in every thread of the team and in a fixed order.
  __device__ static float2 sum(float2 value) {
    value.x = warp_sum(value.x);
    value.y = warp_sum(value.y);
    if constexpr (kWholeBlock) {
      __shared__ float2 scratch[kMaxThreadsPerRow / kWarpSize];
      __syncthreads();
      if (threadIdx.x % kWarpSize == 0) {
        scratch[threadIdx.x / kWarpSize] = value;
      }
      __syncthreads();
      value = {0.0f, 0.0f};
      for (int i = 0; i < static_cast<int>(blockDim.x) / kWarpSize; ++i) {
        value.x += scratch[i].x;
        value.y += scratch[i].y;
      }
    }
    return value;
  }
};

// stream + factor * pending as the stream stores it; every kernel that adds a branch uses this, so
// that all get the same bits.
template <class Stored>
__device__ __forceinline__ Stored settled(float stream, float factor, float pending) {
  return from_float<Stored>(fmaf(factor, pending, stream));
}

// Calls body(TypeTag<Stored>, TypeTag<Branch>) for the dtypes of stream and branch.
template <class Body>
void dispatch_stream(DType stream, DType branch, Body&& body) {
  dispatch_device(branch, [&](auto branch_tag) {
    using Branch = typename decltype(branch_tag)::type;
    if (stream == branch) {
      body(TypeTag<Branch>{}, branch_tag);
    } else if constexpr (sizeof(Branch) == 2) {
      body(TypeTag<float>{}, branch_tag);
    }
  });
}

// Calls body(std::integral_constant<int, n>) with the octets per lane of a warp that holds a row.
template <class Body>
void dispatch_octets(std::int64_t columns, Body&& body) {
  switch ((columns + kWarpSize * kOctet - 1) / (kWarpSize * kOctet)) {
    case 1:
      return body(std::integral_constant<int, 1>{});
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 3:
      return body(std::integral_constant<int, 3>{});
    default:
      return body(std::integral_constant<int, 4>{});
  }
}

}  // namespace bloomery
