#include "device/cuda.h"

#include "device/cuda_check.h"
#include "device/event_query.h"

namespace bloomery::cuda {
namespace {

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

int num_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // a machine without a driver is not an error
    return 0;
  }
  return count;
}

std::string device_name(int index) {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return properties.name;
}

std::string device_uuid(int index) {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return std::string(properties.uuid.bytes, sizeof properties.uuid.bytes);
}

void use_device(int index) { check_cuda(cudaSetDevice(index), "cudaSetDevice"); }

bool can_overlap_launches(int index) {
  int major = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
             "cudaDeviceGetAttribute");
  return major >= 9;
}

void* allocate(int index, std::size_t bytes) {
  use_device(index);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check_cuda(status, "cudaMalloc");
  return memory;
}

void release(int, void* memory) { static_cast<void>(cudaFree(memory)); }

std::size_t free_bytes(int index) {
  use_device(index);
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return memory;
}

void release_pinned(void* memory) { static_cast<void>(cudaFreeHost(memory)); }

// Non-blocking, so that ranks that share a GPU never wait for each other's legacy stream.
void* make_stream(int index) {
  use_device(index);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

void destroy_stream(void* stream) { static_cast<void>(cudaStreamDestroy(as_stream(stream))); }

void synchronize(void* stream) {
  check_cuda(cudaStreamSynchronize(as_stream(stream)), "cudaStreamSynchronize");
}

void copy(void* stream, void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream)),
             "cudaMemcpyAsync");
}

void fill(void* stream, void* to, unsigned char byte, std::size_t bytes) {
  check_cuda(cudaMemsetAsync(to, byte, bytes, as_stream(stream)), "cudaMemsetAsync");
}

void* make_event(int index) {
  use_device(index);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

void destroy_event(void* event) { static_cast<void>(cudaEventDestroy(as_event(event))); }

void record_event(void* event, void* stream) {
  check_cuda(cudaEventRecord(as_event(event), as_stream(stream)), "cudaEventRecord");
}

void wait_event(void* stream, void* event) {
  check_cuda(cudaStreamWaitEvent(as_stream(stream), as_event(event)), "cudaStreamWaitEvent");
}

void synchronize_event(void* event) {
  check_cuda(cudaEventSynchronize(as_event(event)), "cudaEventSynchronize");
}

bool event_happened(void* event) { return cudaEventQuery(as_event(event)) != cudaErrorNotReady; }

double seconds_between(void* earlier, void* later) {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, as_event(earlier), as_event(later)),
             "cudaEventElapsedTime");
  return milliseconds * 1e-3;
}

void* capture(void* stream, const std::function<void()>& work) {
  check_cuda(cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(as_stream(stream), &graph));
    if (graph != nullptr) {
      static_cast<void>(cudaGraphDestroy(graph));
    }
    static_cast<void>(cudaGetLastError());  // an invalidated capture is not the next call's error
    throw;
  }
  const cudaError_t ended = cudaStreamEndCapture(as_stream(stream), &graph);
  if (ended != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // likewise
  }
  check_cuda(ended, "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check_cuda(status, "cudaGraphInstantiate");
  return executable;
}

void replay(void* graph, void* stream) {
  check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), as_stream(stream)),
             "cudaGraphLaunch");
}

void destroy_graph(void* graph) {
  static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}

}  // namespace bloomery::cuda
