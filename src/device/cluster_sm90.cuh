// Blocks of a cluster, for sm_90 and newer: they wait for each other, and read each other's shared
// memory. A launch without clusters has clusters of one block.
#pragma once

#include <cstdint>

#include "device/cuda_check.h"

namespace bloomery {

// Of a GPU of sm_90; 0: it is another one.
inline int num_sm90_processors(const Stream& stream) {
  const int index = stream.device().options().index;
  const auto number = [&](cudaDeviceAttr which) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, index), "cudaDeviceGetAttribute");
    return value;
  };
  return number(cudaDevAttrComputeCapabilityMajor) == 9 &&
                 number(cudaDevAttrComputeCapabilityMinor) == 0
             ? number(cudaDevAttrMultiProcessorCount)
             : 0;
}

// All threads of all blocks; what they wrote before is there for all behind it. Before a block may
// end that others read from, too.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::
                   : "memory");
}

// What lies at this place of shared memory in block `rank`.
template <class T>
__device__ __forceinline__ T load_of_block(const T* place, unsigned rank);
template <>
__device__ __forceinline__ float4 load_of_block(const float4* place, unsigned rank) {
  float4 x;
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}\n"
      : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
      : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(place))), "r"(rank)
      : "memory");
  return x;
}
template <>
__device__ __forceinline__ float2 load_of_block(const float2* place, unsigned rank) {
  float2 x;
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %2, %3;\n"
      "ld.shared::cluster.v2.f32 {%0, %1}, [there];\n}\n"
      : "=f"(x.x), "=f"(x.y)
      : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(place))), "r"(rank)
      : "memory");
  return x;
}

}  // namespace bloomery
