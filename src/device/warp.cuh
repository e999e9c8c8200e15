// The only place with warp width, shuffles and vector memory access for ordinary kernels; a build
// for another vendor replaces this header. Architecture-specific instructions live in *_sm90.cu.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace bloomery {

inline constexpr int kWarpSize = 32;

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  }
  return value;
}

template <class T>
__device__ __forceinline__ T warp_max(T value) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    const T other = __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    value = other > value ? other : value;
  }
  return value;
}

// Sum over the block, the same in every thread and in a fixed order. `scratch` holds one T per
// warp; the block must be whole warps.
template <class T>
__device__ __forceinline__ T block_sum(T value, T* scratch) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  value = warp_sum(value);
  __syncthreads();
  if (lane == 0) {
    scratch[warp] = value;
  }
  __syncthreads();
  T total = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x) / kWarpSize; ++i) {
    total += scratch[i];
  }
  return total;
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// kCount elements that are read or written in one access when they are 16 bytes.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T elements[kCount];
  __device__ __forceinline__ T& operator[](int i) { return elements[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return elements[i]; }
};
template <class T>
inline constexpr int kPackSize = 16 / static_cast<int>(sizeof(T));

template <int kCount, class T>
__device__ __forceinline__ Pack<T, kCount> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kCount>*>(from);
}
template <class T, int kCount>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kCount>& pack) {
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

}  // namespace bloomery
