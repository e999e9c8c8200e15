#include "ops/attention/attention_settings.h"
#include "ops/attention/flash_forward_sm80.cuh"
#include "ops/attention/flash_launch_sm80.cuh"

namespace bloomery::attention_cuda {

void flash_run(Stream& stream, const AttentionForward& k) {
  if (!stream.device().service<AttentionSettings>().only_sm80 && flash_run_sm90(stream, k)) {
    return;
  }
  const AttentionProblem& problem = k.problem;
  const FlashForward args{.k = k,
                          .scale_log2 = problem.scale * kLog2E,
                          .dropout_scale = dropout_scale(problem.dropout_threshold)};
  const bool vectors = vector_access(problem, {k.q, k.k, k.v}, {k.out.data});
  dispatch_flash<FlashForwardKernel>(problem, vectors, [&]<class Kernel>() {
    const std::int64_t tiles = (problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries;
    launch_flash(stream, flash_forward<Kernel>, tiles * problem.num_heads * problem.num_sequences,
                 Kernel::kThreads, Kernel::kSharedBytes, args, "flash_forward");
  });
}

}  // namespace bloomery::attention_cuda
