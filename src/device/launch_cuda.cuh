// Kernels of a stream that overlaps launches (overlap.h) may start before the ones
// before them have ended: then the time between two kernels is not lost. Such a kernel calls
// wait_for_kernels_before() before it touches memory that others write or read, and
// let_next_kernel_start() as soon as the next may start.
#pragma once

#include "device/cuda_check.h"
#include "device/overlap.h"

namespace bloomery {

// Until all that earlier kernels wrote is there.
__device__ __forceinline__ void wait_for_kernels_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Brings what lies there into the cache that all processors share, whoever may still write it.
__device__ __forceinline__ void fetch_ahead(const void* from) {
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(from));
}

// Blocks, and, for sm_90 and newer, how many of them form a cluster.
struct Blocks {
  dim3 grid;
  int threads = 0;               // of each
  std::size_t shared_bytes = 0;  // of each, beside what the kernel declares
  dim3 cluster = dim3(1, 1, 1);
};

// For kernels that wait as above.
template <class... Parameters, class... Arguments>
void launch_kernel(Stream& stream, void (*kernel)(Parameters...), const Blocks& blocks,
                   Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (overlaps_launches(stream)) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (const dim3& c = blocks.cluster; c.x * c.y * c.z > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {c.x, c.y, c.z};
  }
  if (blocks.shared_bytes > 48 * 1024) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(blocks.shared_bytes)),
               "cudaFuncSetAttribute");
  }
  cudaLaunchConfig_t config{};
  config.gridDim = blocks.grid;
  config.blockDim = dim3(static_cast<unsigned>(blocks.threads));
  config.dynamicSmemBytes = blocks.shared_bytes;
  config.stream = cuda_stream(stream);
  config.attrs = attributes;
  config.numAttrs = count;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
             "cudaLaunchKernelEx");
}
template <class... Parameters, class... Arguments>
void launch_kernel(Stream& stream, void (*kernel)(Parameters...), dim3 grid, int threads,
                   Arguments&&... arguments) {
  launch_kernel(stream, kernel, Blocks{.grid = grid, .threads = threads},
                std::forward<Arguments>(arguments)...);
}

}  // namespace bloomery
