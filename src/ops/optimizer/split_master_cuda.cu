#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/optimizer/split_master.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

__global__ void split_weights(const float* x, std::uint16_t* value, std::uint16_t* low,
                              std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) {
    return;
  }
  const SplitMaster halves = split_weight(__float_as_uint(x[i]));
  value[i] = halves.value;
  if (low != nullptr) {
    low[i] = halves.low;
  }
}

__global__ void join_weights(const std::uint16_t* value, const std::uint16_t* low, float* y,
                             std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    y[i] = __uint_as_float(joined_bits({value[i], low[i]}));
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const SplitWeights& k) {
  const std::int64_t count = k.x.numel();
  if (count == 0) {
    return;
  }
  split_weights<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      k.x.as<float>(), k.value.as<std::uint16_t>(), k.low.as<std::uint16_t>(), count);
  check_launch("split_weights");
}

void run(OnCuda, Stream& stream, const JoinWeights& k) {
  const std::int64_t count = k.y.numel();
  if (count == 0) {
    return;
  }
  join_weights<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      k.value.as<std::uint16_t>(), k.low.as<std::uint16_t>(), k.y.as<float>(), count);
  check_launch("join_weights");
}

}  // namespace bloomery
