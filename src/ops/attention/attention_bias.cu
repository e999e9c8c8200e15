#include "device/cuda_check.h"
#include "device/warp.cuh"
#include "ops/attention/attention_backends.h"

namespace bloomery::attention_cuda {
namespace {

constexpr int kThreads = 128;

struct AddUp {
  const float* parts;
  float* to;  // [heads, 2 * to_reach + 1]
  std::int64_t num_parts, num_heads, reach, to_reach;
  float factor;
};

// One block per element of the result: one distance of the parts, or all that lie beyond its reach.
__global__ void __launch_bounds__(kThreads) add_up_parts(const __grid_constant__ AddUp k) {
  __shared__ float scratch[kThreads / kWarpSize];
  const std::int64_t distances = 2 * k.to_reach + 1;
  const std::int64_t head = blockIdx.x / distances, index = blockIdx.x % distances;
  const std::int64_t distance = index - k.to_reach;
  const std::int64_t first = index == 0 ? -k.reach : max(distance, -k.reach);
  const std::int64_t last = index == distances - 1 ? k.reach : min(distance, k.reach);
  const std::int64_t count = max(last - first + 1, std::int64_t{0}) * k.num_parts;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    const std::int64_t part = i % k.num_parts, at = first + i / k.num_parts + k.reach;
    sum += k.parts[(part * k.num_heads + head) * (2 * k.reach + 1) + at];
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    k.to[blockIdx.x] = sum * k.factor;
  }
}

}  // namespace

BiasPartials::BiasPartials(Stream& stream, const AttentionBackward& k, std::int64_t num_parts,
                           std::int64_t reach)
    : stream_(stream), k_(k), reach_(reach) {
  if (k.grad_bias) {
    parts_ = Tensor::zeros(stream, DType::fp32, {num_parts, k.problem.num_heads, 2 * reach + 1});
  }
}

void BiasPartials::add_up(float factor) const {
  if (!parts_) {
    return;
  }
  const AttentionProblem& problem = k_.problem;
  const std::int64_t blocks = problem.num_heads * (2 * problem.bias_reach + 1);
  add_up_parts<<<static_cast<unsigned>(blocks), kThreads, 0, cuda_stream(stream_)>>>(
      AddUp{.parts = data(),
            .to = static_cast<float*>(k_.grad_bias.data),
            .num_parts = parts_.shape()[0],
            .num_heads = problem.num_heads,
            .reach = reach_,
            .to_reach = problem.bias_reach,
            .factor = factor});
  check_launch("add_up_parts");
}

}  // namespace bloomery::attention_cuda
