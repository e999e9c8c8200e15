#include "ops/attention/flash_backward_consumer_sm90.cuh"
#include "ops/attention/flash_backward_launch.cuh"
#include "ops/attention/tensor_map_sm90.h"

namespace bloomery::attention_cuda {
namespace {

template <class Kernel>
void run_kernel(Stream& stream, const AttentionBackward& k) {
  const AttentionProblem& problem = k.problem;
  using Keys = typename Kernel::KeyTile;
  using Queries = typename Kernel::QueryTile;
  const std::int64_t per_group = problem.heads_per_group();
  const auto map_keys = [&](const HeadView& view) {
    return map_heads(problem, {view, problem.key_length, 1, Keys::kRows, Keys::kPanel});
  };
  const auto map_queries = [&](const HeadView& view) {
    return map_heads(problem,
                     {view, problem.query_length, per_group, Queries::kRows, Queries::kPanel});
  };
  const HeadView grad_out{.data = const_cast<void*>(k.grad_out.data),
                          .token_stride = problem.num_heads * problem.head_dim,
                          .group_stride = per_group * problem.head_dim};
  run_backward<Kernel>(stream, k, [&](const FlashBackward& base, std::int64_t num_blocks) {
    const FlashBackward90 args{.base = base,
                               .queries = map_queries(k.q),
                               .grads_out = map_queries(grad_out),
                               .keys = map_keys(k.k),
                               .values = map_keys(k.v),
                               .dropout_keys = DropoutKeys(problem.dropout_key)};
    launch_flash(stream, flash_backward_90<Kernel>, num_blocks, Kernel::kBlockThreads,
                 Kernel::kSharedBytes, args, "flash_backward_90");
  });
}

template <class T, int kDim, bool kDropout, bool>
using Kernel90 = FlashBackwardKernel90<T, kDim, kDropout>;

}  // namespace

bool flash_run_sm90(Stream& stream, const AttentionBackward& k) {
  const AttentionProblem& problem = k.problem;
  if (!sm90_applies(stream, problem) ||
      !vector_access(problem, {k.q, k.k, k.v, k.grad_q, k.grad_k, k.grad_v},
                     {k.out.data, k.grad_out.data})) {
    return false;
  }
  dispatch_flash<Kernel90>(problem, true, [&]<class Kernel>() { run_kernel<Kernel>(stream, k); });
  return true;
}

}  // namespace bloomery::attention_cuda
