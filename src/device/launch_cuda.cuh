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

// For kernels that wait as above.
template <class... Parameters, class... Arguments>
void launch_kernel(Stream& stream, void (*kernel)(Parameters...), dim3 grid, int threads,
                   Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = cuda_stream(stream);
  config.attrs = &overlap;
  config.numAttrs = overlaps_launches(stream) ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
             "cudaLaunchKernelEx");
}

}  // namespace bloomery
