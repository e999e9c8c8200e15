#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/task_loss/task_loss.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

__global__ void squared_errors(const float* x, const float* scores, const float* weights,
                               const float* inverse, const float* grad_scale, float* losses,
                               float* gradient, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const float error = x[i] - scores[i];
  const float factor = 2.0f * *inverse * (grad_scale != nullptr ? *grad_scale : 1.0f);
  losses[i] = error * error;
  gradient[i] = error * (weights != nullptr ? weights[i] : 1.0f) * factor;
}

}  // namespace

void run(OnCuda, Stream& stream, const SquaredErrors& k) {
  const std::int64_t count = k.x.numel();
  if (count == 0) {
    return;
  }
  squared_errors<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      k.x.as<float>(), k.scores.as<float>(), k.weights ? k.weights.as<float>() : nullptr,
      k.inverse.as<float>(), k.grad_scale ? k.grad_scale.as<float>() : nullptr,
      k.losses.as<float>(), k.gradient.as<float>(), count);
  check_launch("squared_errors");
}

}  // namespace bloomery
