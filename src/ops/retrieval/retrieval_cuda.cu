#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/retrieval/retrieval.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;  // of the block that has a row, or all ranks

__device__ __forceinline__ float block_max(float value, float* scratch) {
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) {
    scratch[threadIdx.x / kWarpSize] = value;
  }
  __syncthreads();
  float larger = scratch[0];
  for (int i = 1; i < kThreads / kWarpSize; ++i) {
    larger = fmaxf(larger, scratch[i]);
  }
  return larger;
}

__global__ void __launch_bounds__(kThreads)
    retrieval_rows(float* scores, std::int64_t count, float scale, float* losses,
                   std::int32_t* ranks, bool gradient, float factor, const float* grad_scale) {
  __shared__ float scratch[kThreads / kWarpSize];
  __shared__ int counts[kThreads / kWarpSize];
  const std::int64_t row = blockIdx.x;
  float* const x = scores + row * count;
  const float own = x[row];
  float largest = -INFINITY;
  int better = 0;
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) {
    const float score = x[c];
    largest = fmaxf(largest, score);
    better += c < row ? !(score < own) : c > row && !(score <= own);
  }
  const float max = block_max(largest, scratch);
  const int rank = block_sum(better, counts);
  float part = 0;
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) {
    part += expf(scale * (x[c] - max));
  }
  const float sum = block_sum(part, scratch);
  if (threadIdx.x == 0) {
    losses[row] = logf(sum) + scale * (max - own);
    ranks[row] = rank;
  }
  if (!gradient) {
    return;
  }
  const float upstream =
      scale * factor * (grad_scale != nullptr ? *grad_scale : 1.0f) / static_cast<float>(count);
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) {
    x[c] = (expf(scale * (x[c] - max)) / sum - (c == row ? 1.0f : 0.0f)) * upstream;
  }
}

__global__ void __launch_bounds__(kThreads)
    retrieval_share(const std::int32_t* ranks, std::int64_t count, std::int64_t most,
                    float* share) {
  __shared__ int counts[kThreads / kWarpSize];
  int found = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    found += ranks[i] < most;
  }
  const int all = block_sum(found, counts);
  if (threadIdx.x == 0) {
    *share = static_cast<float>(all) / static_cast<float>(count);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const RetrievalRows& k) {
  const std::int64_t rows = k.scores.shape[0];
  if (rows == 0) {
    return;
  }
  retrieval_rows<<<static_cast<unsigned int>(rows), kThreads, 0, cuda_stream(stream)>>>(
      k.scores.as<float>(), rows, k.scale, k.losses.as<float>(), k.ranks.as<std::int32_t>(),
      k.gradient, k.factor, k.grad_scale ? k.grad_scale.as<float>() : nullptr);
  check_launch("retrieval_rows");
}

void run(OnCuda, Stream& stream, const RetrievalShare& k) {
  retrieval_share<<<1, kThreads, 0, cuda_stream(stream)>>>(
      k.ranks.as<std::int32_t>(), k.ranks.numel(), k.most, k.share.as<float>());
  check_launch("retrieval_share");
}

}  // namespace bloomery
