#include "ops/attention/attention_settings.h"
#include "ops/attention/flash_backward_sm80.cuh"

namespace bloomery::attention_cuda {
namespace {

template <class T, int kDim, bool kDropout, bool kVectors>
using Kernel = FlashBackwardKernel<T, kDim, kDropout, kVectors, false>;

}  // namespace

bool flash_applies(Stream& stream, const AttentionProblem& problem) {
  if ((problem.dtype != DType::bf16 && problem.dtype != DType::fp16) || problem.head_dim > 128 ||
      !(problem.scale > 0)) {
    return false;
  }
  const int device = stream.device().options().index;
  int shared_bytes = 0, major = 0;
  check_cuda(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  constexpr int kLargest = Kernel<__nv_bfloat16, 128, true, true>::kSharedBytes;
  return major >= 8 && shared_bytes >= kLargest;
}

void flash_run(Stream& stream, const AttentionBackward& k) {
  if (k.problem.bias != nullptr) {
    return flash_run_bias(stream, k);
  }
  if (!stream.device().service<AttentionSettings>().only_sm80 && flash_run_sm90(stream, k)) {
    return;
  }
  run_flash_backward<Kernel>(stream, k);
}

}  // namespace bloomery::attention_cuda
