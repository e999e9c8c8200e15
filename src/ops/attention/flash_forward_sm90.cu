#include "ops/attention/flash_forward_sm90.cuh"
#include "ops/attention/flash_launch_sm80.cuh"
#include "ops/attention/tensor_map_sm90.h"

namespace bloomery::attention_cuda {
namespace {

template <class T, int kDim, bool kDropout, bool>
using Kernel90 = FlashForwardKernel90<T, kDim, kDropout>;

}  // namespace

bool flash_run_sm90(Stream& stream, const AttentionForward& k) {
  const AttentionProblem& problem = k.problem;
  if (!sm90_applies(stream, problem) || !vector_access(problem, {k.q, k.k, k.v}, {k.out.data})) {
    return false;
  }
  dispatch_flash<Kernel90>(problem, true, [&]<class Kernel>() {
    using Keys = typename Kernel::KeyTile;
    const std::int64_t per_group = problem.heads_per_group();
    const auto map_keys = [&](const HeadView& view) {
      return map_heads(problem, {view, problem.key_length, 1, Keys::kRows, Keys::kPanel});
    };
    const FlashForward90 args{.k = k,
                              .queries = map_heads(problem, {k.q, problem.query_length, per_group,
                                                             Kernel::kQueries, Keys::kPanel}),
                              .keys = map_keys(k.k),
                              .values = map_keys(k.v),
                              .dropout_keys = DropoutKeys(problem.dropout_key),
                              .scale_log2 = problem.scale * kLog2E,
                              .dropout_scale = dropout_scale(problem.dropout_threshold)};
    const std::int64_t tiles = (problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries;
    launch_flash(stream, flash_forward_90<Kernel>,
                 tiles * problem.num_heads * problem.num_sequences, Kernel::kThreads,
                 Kernel::kSharedBytes, args, "flash_forward_90");
  });
  return true;
}

}  // namespace bloomery::attention_cuda
