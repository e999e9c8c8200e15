// What the CUDA kernels of the norms share. A row lies in the registers of one warp (up to 1024
// columns) or of one block (up to 16384), in octets; other widths go through memory by element.
#pragma once

#include <type_traits>

#include "ops/common/dispatch_cuda.cuh"
#include "ops/common/octet.cuh"
#include "ops/dropout/mask_cuda.cuh"
#include "ops/norm/norm.h"

namespace bloomery {

inline constexpr int kMaxOctets = 4;        // per thread
inline constexpr int kMaxWarpsPerRow = 16;  // so that a thread may have 128 registers
inline constexpr int kMaxThreadsPerRow = kMaxWarpsPerRow * kWarpSize;
inline constexpr std::int64_t kColumnsPerOctet = kWarpSize * kOctet;  // of a warp
inline constexpr std::int64_t kWarpColumns = kColumnsPerOctet * kMaxOctets;
inline constexpr std::int64_t kBlockColumns = kWarpColumns * kMaxWarpsPerRow;

// Threads of a block that holds a row, with up to this many octets each.
inline int threads_per_row(std::int64_t columns, int octets) {
  const std::int64_t per_warp = kColumnsPerOctet * octets;
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

template <class Stored, class Branch>
__device__ __forceinline__ Octet<Stored> settled(const Octet<Stored>& stream,
                                                 const float (&factors)[kOctet],
                                                 const Octet<Branch>& pending) {
  float sum[kOctet];
#pragma unroll
  for (int i = 0; i < kOctet; ++i) {
    sum[i] = fmaf(factors[i], pending[i], stream[i]);
  }
  return to_octet<Stored>(sum);
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

// Calls body(std::integral_constant<int, n>) with the octets per lane of a warp that holds a row,
// at most kMost.
template <int kMost, class Body>
void dispatch_octets(std::int64_t columns, Body&& body) {
  if constexpr (kMost > 1) {
    if (columns <= kColumnsPerOctet * (kMost - 1)) {
      return dispatch_octets<kMost - 1>(columns, body);
    }
  }
  body(std::integral_constant<int, kMost>{});
}

}  // namespace bloomery
