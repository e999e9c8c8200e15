// The functions that we and cudnn-frontend call of cuDNN and of the run-time compiler.
#include "ops/attention/cudnn_library.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nvrtc.h>
#include <unistd.h>

#include <filesystem>

#include "device/cuda_library.h"

namespace {

const bloomery::Library& cudnn() {
  static const bloomery::Library library = bloomery::open_cuda_library("libcudnn.so.9");
  return library;
}

const bloomery::Library& compiler() {
  static const bloomery::Library library =
      bloomery::open_cuda_library("libnvrtc.so." BLOOMERY_CUDA_MAJOR);
  return library;
}

}  // namespace

bool bloomery::attention_cuda::cudnn_found() { return static_cast<bool>(cudnn()); }

void bloomery::attention_cuda::open_cudnn_ahead() {
  Dl_info place{};
  if (!cudnn() || !compiler() || dladdr(cudnn().find("cudnnCreate"), &place) == 0) {
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(place.dli_fname).parent_path();
  for (const char* const part : {"graph", "heuristic", "engines_runtime_compiled"}) {
    const int file = open((folder / concat("libcudnn_", part, ".so.9")).c_str(), O_RDONLY);
    if (file >= 0) {
      static_cast<void>(posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED));  // advice only
      close(file);
    }
  }
}

#define FORWARD_CUDNN(result, name, parameters, arguments) \
  BLOOMERY_FORWARD(cudnn(), "cuDNN", result, name, parameters, arguments)
#define FORWARD_COMPILER(name, parameters, arguments) \
  BLOOMERY_FORWARD(compiler(), "NVRTC", nvrtcResult, name, parameters, arguments)

FORWARD_CUDNN(std::size_t, cudnnGetVersion, (), ())
FORWARD_CUDNN(const char*, cudnnGetErrorString, (cudnnStatus_t status), (status))
FORWARD_CUDNN(void, cudnnGetLastErrorString, (char* message, std::size_t bytes), (message, bytes))
FORWARD_CUDNN(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * handle), (handle))
FORWARD_CUDNN(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle), (handle))
FORWARD_CUDNN(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream),
              (handle, stream))
FORWARD_CUDNN(cudnnStatus_t, cudnnGetStream, (cudnnHandle_t handle, cudaStream_t* stream),
              (handle, stream))
FORWARD_CUDNN(cudnnStatus_t, cudnnBackendCreateDescriptor,
              (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor),
              (type, descriptor))
FORWARD_CUDNN(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor),
              (descriptor))
FORWARD_CUDNN(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor),
              (descriptor))
FORWARD_CUDNN(cudnnStatus_t, cudnnBackendSetAttribute,
              (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, std::int64_t count, const void* values),
              (descriptor, name, type, count, values))
FORWARD_CUDNN(cudnnStatus_t, cudnnBackendGetAttribute,
              (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, std::int64_t wanted, std::int64_t* count,
               void* values),
              (descriptor, name, type, wanted, count, values))
FORWARD_CUDNN(cudnnStatus_t, cudnnBackendExecute,
              (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack),
              (handle, plan, pack))

FORWARD_COMPILER(nvrtcCreateProgram,
                 (nvrtcProgram * program, const char* source, const char* name, int num_headers,
                  const char* const* headers, const char* const* include_names),
                 (program, source, name, num_headers, headers, include_names))
FORWARD_COMPILER(nvrtcDestroyProgram, (nvrtcProgram * program), (program))
FORWARD_COMPILER(nvrtcCompileProgram,
                 (nvrtcProgram program, int num_options, const char* const* options),
                 (program, num_options, options))
FORWARD_COMPILER(nvrtcGetCUBINSize, (nvrtcProgram program, std::size_t* bytes), (program, bytes))
FORWARD_COMPILER(nvrtcGetCUBIN, (nvrtcProgram program, char* cubin), (program, cubin))
FORWARD_COMPILER(nvrtcGetProgramLogSize, (nvrtcProgram program, std::size_t* bytes),
                 (program, bytes))
FORWARD_COMPILER(nvrtcGetProgramLog, (nvrtcProgram program, char* log), (program, log))
