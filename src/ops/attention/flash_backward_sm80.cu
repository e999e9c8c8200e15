#include "ops/attention/attention_settings.h"
#include "ops/attention/flash_backward_launch.cuh"
#include "ops/attention/flash_backward_sm80.cuh"

namespace bloomery::attention_cuda {

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
  constexpr int kLargest = FlashBackwardKernel<__nv_bfloat16, 128, true, true>::kSharedBytes;
  return major >= 8 && shared_bytes >= kLargest;
}

void flash_run(Stream& stream, const AttentionBackward& k) {
  if (!stream.device().service<AttentionSettings>().only_sm80 && flash_run_sm90(stream, k)) {
    return;
  }
  const bool vectors = vector_access(k.problem, {k.q, k.k, k.v, k.grad_q, k.grad_k, k.grad_v},
                                     {k.out.data, k.grad_out.data});
  dispatch_flash<FlashBackwardKernel>(k.problem, vectors, [&]<class Kernel>() {
    run_backward<Kernel>(stream, k, [&](const FlashBackward& args, std::int64_t num_blocks) {
      launch_flash(stream, flash_backward<Kernel>, num_blocks, Kernel::kThreads,
                   Kernel::kSharedBytes, args, "flash_backward");
    });
  });
}

}  // namespace bloomery::attention_cuda
