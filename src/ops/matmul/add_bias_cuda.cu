#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/matmul/add_bias.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

template <class T, class Bias>
__global__ void add_bias(T* d, const Bias* bias, std::int64_t count, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    d[i] = from_float<T>(to_float(d[i]) + to_float(bias[i % n]));
  }
}

}  // namespace

void add_bias_cuda(Stream& stream, const View& d, const ConstView& bias) {
  const std::int64_t count = d.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(d.dtype, [&](auto to) {
    dispatch_device(bias.dtype, [&](auto from) {
      using T = typename decltype(to)::type;
      using Bias = typename decltype(from)::type;
      add_bias<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
          d.as<T>(), bias.as<Bias>(), count, bias.numel());
      check_launch("add_bias");
    });
  });
}

}  // namespace bloomery
