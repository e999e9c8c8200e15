// What the kernels of losses share on CUDA: a block goes through a row of logits, pack by pack.
#pragma once

#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kRowThreads = 512;    // one block per row of logits
constexpr int kInFlight = 4;        // packs that a thread reads ahead
constexpr int kTokenThreads = 256;  // one thread per token

// The hardware's exponential is exact enough for logits of 16 bits; fp32 takes the accurate one.
template <class T>
__device__ __forceinline__ float exponential(float x) {
  if constexpr (sizeof(T) == 2) {
    return __expf(x);
  } else {
    return expf(x);
  }
}

__device__ __forceinline__ float mask_at(const float* mask, std::int64_t t) {
  return mask != nullptr ? mask[t] : 1.0f;
}

__device__ __forceinline__ float block_max(float value, float* scratch) {
  const float warp = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) {
    scratch[threadIdx.x / kWarpSize] = warp;
  }
  __syncthreads();
  float larger = scratch[0];
  for (int i = 1; i < static_cast<int>(blockDim.x) / kWarpSize; ++i) {
    larger = fmaxf(larger, scratch[i]);
  }
  return larger;
}

// Calls body(start) with a fixed number of packs from each start, kRowThreads packs apart: groups
// of kInFlight packs, then single packs, then the elements that fill no pack.
template <int kCount, class Body>
__device__ __forceinline__ void for_packs(std::int64_t count, Body&& body) {
  const std::int64_t packs = count / kCount;
  std::int64_t p = threadIdx.x;
  for (; p + (kInFlight - 1) * kRowThreads < packs; p += kInFlight * kRowThreads) {
    body(std::integral_constant<int, kInFlight>{}, std::integral_constant<int, kCount>{},
         p * kCount);
  }
  for (; p < packs; p += kRowThreads) {
    body(std::integral_constant<int, 1>{}, std::integral_constant<int, kCount>{}, p * kCount);
  }
  if constexpr (kCount > 1) {
    if (const std::int64_t i = packs * kCount + threadIdx.x; i < count) {
      body(std::integral_constant<int, 1>{}, std::integral_constant<int, 1>{}, i);
    }
  }
}

template <int kPacks, int kCount, class T>
__device__ __forceinline__ void load_packs(const T* from, Pack<T, kCount> (&packs)[kPacks]) {
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    packs[p] = load_pack<kCount>(from + p * kRowThreads * kCount);
  }
}

// Whether every row of a matrix starts on 16 bytes.
bool packed_rows(const void* data, std::int64_t width, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         width * static_cast<std::int64_t>(size_of(dtype)) % 16 == 0;
}

}  // namespace
}  // namespace bloomery
