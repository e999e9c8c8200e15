#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/loss/half_loss.h"

namespace bloomery {
namespace {

constexpr int kRowThreads = 512;    // one block per row of logits
constexpr int kTokenThreads = 256;  // one thread per token

__device__ __forceinline__ float rounded(float x) { return __half2float(__float2half_rn(x)); }

__device__ __forceinline__ float exponential(__half x, float max) {
  return rounded(expf(rounded(__half2float(x) - max)));
}

__device__ __forceinline__ float mask_at(const float* mask, std::int64_t t) {
  return mask != nullptr ? mask[t] : 1.0f;
}

__global__ void __launch_bounds__(kRowThreads)
    row_sum(const __half* logits, LossColumns columns, std::int64_t width, const float* max,
            float* sum) {
  __shared__ float scratch[kRowThreads / kWarpSize];
  const std::int64_t row = blockIdx.x;
  float part = 0;
  for (std::int64_t c = threadIdx.x; c < columns.num_valid; c += kRowThreads) {
    part += exponential(logits[row * width + c], max[row]);
  }
  part = block_sum(part, scratch);
  if (threadIdx.x == 0) {
    sum[row] = part;
  }
}

struct TokenArguments {
  const float *max, *sum, *target, *mask;
  const std::int32_t* labels;
  std::int64_t vocabulary;
};

__global__ void token_losses(TokenArguments k, float* losses, std::int64_t count) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= count) {
    return;
  }
  float loss = rounded(rounded(logf(rounded(k.sum[t]))) - rounded(k.target[t] - k.max[t]));
  if (k.labels[t] < 0 || k.labels[t] >= k.vocabulary) {
    loss = mask_at(k.mask, t) == 0.0f ? 0.0f : NAN;
  }
  losses[t] = loss;
}

struct GradientArguments {
  const std::int32_t* labels;
  LossColumns columns;
  std::int64_t width;
  const float *max, *sum, *mask, *inverse, *grad_scale;
};

__global__ void __launch_bounds__(kRowThreads) row_gradient(__half* logits, GradientArguments k) {
  const std::int64_t row = blockIdx.x;
  __half* const x = logits + row * k.width;
  const float exact =
      mask_at(k.mask, row) * *k.inverse * (k.grad_scale != nullptr ? *k.grad_scale : 1.0f);
  const float weight = rounded(exact), max = k.max[row], sum = rounded(k.sum[row]);
  const std::int64_t label = k.columns.of(k.labels[row]);
  for (std::int64_t c = threadIdx.x; c < k.width; c += kRowThreads) {
    float gradient = 0;
    if (exact != 0.0f && c < k.columns.num_valid) {
      const float softmax = rounded(exponential(x[c], max) / sum);
      gradient = (c == label ? rounded(softmax - 1) : softmax) * weight;
    }
    x[c] = __float2half_rn(gradient);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const HalfLossSum& k) {
  const std::int64_t rows = k.logits.rows();
  if (rows == 0) {
    return;
  }
  row_sum<<<static_cast<unsigned>(rows), kRowThreads, 0, cuda_stream(stream)>>>(
      k.logits.as<__half>(), k.columns, k.logits.columns(), k.max.as<float>(), k.sum.as<float>());
  check_launch("loss sum in fp16");
}

void run(OnCuda, Stream& stream, const HalfLossTokens& all) {
  const LossTokens& k = all.tokens;
  const std::int64_t count = k.losses.numel();
  const TokenArguments arguments{k.max.as<float>(),           k.sum.as<float>(),
                                 k.target.as<float>(),        k.mask.as<float>(),
                                 k.labels.as<std::int32_t>(), k.vocabulary};
  token_losses<<<num_blocks(count, kTokenThreads), kTokenThreads, 0, cuda_stream(stream)>>>(
      arguments, k.losses.as<float>(), count);
  check_launch("token losses in fp16");
}

void run(OnCuda, Stream& stream, const HalfLossGradient& all) {
  const LossGradient& k = all.gradient;
  const std::int64_t rows = k.logits.rows();
  if (rows == 0) {
    return;
  }
  const GradientArguments arguments{k.labels.as<std::int32_t>(), k.columns,
                                    k.logits.columns(),          k.max.as<float>(),
                                    k.sum.as<float>(),           k.mask.as<float>(),
                                    k.inverse.as<float>(),       k.grad_scale.as<float>()};
  row_gradient<<<static_cast<unsigned>(rows), kRowThreads, 0, cuda_stream(stream)>>>(
      k.logits.as<__half>(), arguments);
  check_launch("loss gradient in fp16");
}

}  // namespace bloomery
