#include "device/cuda_check.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

template <int kCount, class From, class To>
__global__ void scale_add(const From* x, To* y, std::int64_t count, float factor,
                          const float* scale, bool add) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (i >= count) {
    return;
  }
  const float multiplier = scale != nullptr ? factor * *scale : factor;
  const Pack<From, kCount> in = load_pack<kCount>(x + i);
  Pack<To, kCount> out;
  if (add) {
    out = load_pack<kCount>(y + i);
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float x = to_float(in[j]);  // adding zero would lose the sign of a negative zero
    out[j] = from_float<To>(add ? multiplier * x + to_float(out[j]) : multiplier * x);
  }
  store_pack(y + i, out);
}

}  // namespace

void run(OnCuda, Stream& stream, const ScaleAdd& k) {
  const std::int64_t count = k.y.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.x.dtype, [&](auto from) {
    dispatch_device(k.y.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      constexpr int kCount = 4;
      const bool aligned =
          count % kCount == 0 &&
          reinterpret_cast<std::uintptr_t>(k.x.data) % (kCount * sizeof(From)) == 0 &&
          reinterpret_cast<std::uintptr_t>(k.y.data) % (kCount * sizeof(To)) == 0;
      const auto kernel = aligned ? scale_add<kCount, From, To> : scale_add<1, From, To>;
      const unsigned blocks = num_blocks(count, kThreads * (aligned ? kCount : 1));
      kernel<<<blocks, kThreads, 0, cuda_stream(stream)>>>(k.x.as<From>(), k.y.as<To>(), count,
                                                           k.factor, k.scale.as<float>(), k.add);
      check_launch("scale_add");
    });
  });
}

}  // namespace bloomery
