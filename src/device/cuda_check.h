// Statuses of CUDA calls become Errors that name the call and the place. Only .cu files and
// files that are built with CUDA include this.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

#include "base/error.h"
#include "device/stream.h"

namespace bloomery {

inline void check_cuda(cudaError_t status, const char* call,
                       const std::source_location& at = std::source_location::current()) {
  check(status == cudaSuccess, "CUDA: ", call, " failed: ", cudaGetErrorString(status), " (",
        cudaGetErrorName(status), ")", place(at));
}

// After a kernel launch.
inline void check_launch(const char* kernel,
                         const std::source_location& at = std::source_location::current()) {
  check_cuda(cudaGetLastError(), kernel, at);
}

inline cudaStream_t cuda_stream(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace bloomery
