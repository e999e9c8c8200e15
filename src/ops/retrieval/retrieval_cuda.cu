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
    retrieval_rows(float* scores, std::int64_t rows, std::int64_t count, float scale,
                   const float* present, float* losses, std::int32_t* ranks, float* told,
                   bool gradient, float factor, const float* grad_scale) {
  __shared__ float scratch[kThreads / kWarpSize];
  __shared__ int counts[kThreads / kWarpSize];
  const std::int64_t row = blockIdx.x, each = count / rows, own = row * each;
  const auto is_present = [=](std::int64_t c) { return present == nullptr || present[c] != 0; };
  float* const x = scores + row * count;
  if (threadIdx.x == 0 && told != nullptr) {
    told[row] = is_present(own) ? 1.0f : 0.0f;
  }
  if (!is_present(own)) {
    for (std::int64_t c = threadIdx.x; gradient && c < count; c += kThreads) {
      x[c] = 0;
    }
    if (threadIdx.x == 0) {
      losses[row] = 0;
      ranks[row] = -1;
    }
    return;
  }
  const float score = x[own];
  float largest = -INFINITY;
  int better = 0;
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) {
    if (is_present(c)) {
      largest = fmaxf(largest, x[c]);
      better += c < own ? !(x[c] < score) : c > own && !(x[c] <= score);
    }
  }
  const float max = block_max(largest, scratch);
  const int rank = block_sum(better, counts);
  const auto share = [=](std::int64_t c) {
    return is_present(c) ? expf(scale * (x[c] - max)) : 0.0f;
  };
  float part = 0;
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) {
    part += share(c);
  }
  const float sum = block_sum(part, scratch);
  if (threadIdx.x == 0) {
    losses[row] = logf(sum) + scale * (max - score);
    ranks[row] = rank;
  }
  if (!gradient) {
    return;
  }
  int counted = 0;
  for (std::int64_t r = threadIdx.x; r < rows; r += kThreads) {
    counted += is_present(r * each);
  }
  const float upstream = scale * factor * (grad_scale != nullptr ? *grad_scale : 1.0f) /
                         static_cast<float>(block_sum(counted, counts));
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) {
    x[c] = (share(c) / sum - (c == own ? 1.0f : 0.0f)) * upstream;
  }
}

__global__ void __launch_bounds__(kThreads)
    retrieval_share(const std::int32_t* ranks, std::int64_t count, std::int64_t most,
                    bool as_number, float* share) {
  __shared__ int counts[kThreads / kWarpSize];
  int found = 0, told = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    told += ranks[i] >= 0;
    found += ranks[i] >= 0 && ranks[i] < most;
  }
  const int all = block_sum(told, counts);
  const int among = block_sum(found, counts);
  if (threadIdx.x == 0) {
    *share = static_cast<float>(among) / static_cast<float>(as_number || all == 0 ? 1 : all);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const RetrievalRows& k) {
  const std::int64_t rows = k.scores.shape[0];
  if (rows == 0) {
    return;
  }
  retrieval_rows<<<static_cast<unsigned int>(rows), kThreads, 0, cuda_stream(stream)>>>(
      k.scores.as<float>(), rows, k.scores.shape[1], k.scale,
      k.present ? k.present.as<float>() : nullptr, k.losses.as<float>(), k.ranks.as<std::int32_t>(),
      k.counted ? k.counted.as<float>() : nullptr, k.gradient, k.factor,
      k.grad_scale ? k.grad_scale.as<float>() : nullptr);
  check_launch("retrieval_rows");
}

void run(OnCuda, Stream& stream, const RetrievalShare& k) {
  retrieval_share<<<1, kThreads, 0, cuda_stream(stream)>>>(
      k.ranks.as<std::int32_t>(), k.ranks.numel(), k.most, k.count, k.share.as<float>());
  check_launch("retrieval_share");
}

}  // namespace bloomery
