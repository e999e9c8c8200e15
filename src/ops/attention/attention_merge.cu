#include "device/cuda_check.h"
#include "ops/attention/attention_merge.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kLanes = 32;

// A warp joins one head of one query.
template <class Real>
__global__ void merge(AttentionMerge k, const Real* out, const float* lse, float* sum,
                      float* sum_lse) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kLanes;
  if (row >= k.num_queries * k.num_heads) {
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t query = row / k.num_heads, head = row % k.num_heads;
  float* const place = sum_lse + head * k.length + k.first + query;
  const float before = k.start ? -INFINITY : *place, more = lse[head * k.num_queries + query];
  const float larger = fmaxf(before, more), smaller = fminf(before, more);
  const float kept = more == -INFINITY     ? 1.0f
                     : before == -INFINITY ? 0.0f
                                           : 1.0f / (1.0f + expf(more - before));
  const Real* const from = out + row * k.head_dim;
  float* const to = sum + ((k.first + query) * k.num_heads + head) * k.head_dim;
  for (std::int64_t c = lane; c < k.head_dim; c += kLanes) {
    to[c] = kept * (k.start ? 0.0f : to[c]) + (1.0f - kept) * to_float(from[c]);
  }
  __syncwarp();  // all have read the old one
  if (lane == 0) {
    *place = smaller == -INFINITY ? larger : larger + log1pf(expf(smaller - larger));
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const AttentionMerge& k) {
  const std::int64_t threads = k.num_queries * k.num_heads * kLanes;
  if (threads == 0) {
    return;
  }
  dispatch_device(k.out.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    merge<<<num_blocks(threads, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k, k.out.as<Real>(), k.lse.as<float>(), k.sum.as<float>(), k.sum_lse.as<float>());
    check_launch("attention_merge");
  });
}

}  // namespace bloomery
