#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/optimizer/gradient_norm.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kUnitsPerWarp = static_cast<int>(kNormChunk / kUnitSize) / kWarps;
constexpr int kUnitsAtOnce = 8;  // loads in flight per thread
constexpr int kSumThreads = 1024;
static_assert(kUnitSize == 4 * kWarpSize,
              "a warp reads a unit with one load of four elements per thread");
static_assert(kUnitsPerWarp % kUnitsAtOnce == 0);

// The elements first .. first + 3, zero behind the end.
template <class T>
__device__ __forceinline__ Pack<T, 4> load_up_to(const T* from, std::int64_t first,
                                                 std::int64_t count) {
  if (first + 4 <= count) {
    return load_pack<4>(from + first);
  }
  Pack<T, 4> pack;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    pack[j] = first + j < count ? from[first + j] : from_float<T>(0);
  }
  return pack;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    squared_norm_partials(const T* grad, const std::uint8_t* flags, double* partials,
                          std::int64_t count) {
  __shared__ double scratch[kWarps];
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const std::int64_t first_unit = std::int64_t{blockIdx.x} * (kNormChunk / kUnitSize) + warp;
  double sum = 0;
  for (int i = 0; i < kUnitsPerWarp; i += kUnitsAtOnce) {
    Pack<T, 4> packs[kUnitsAtOnce];
    bool counted[kUnitsAtOnce];
#pragma unroll
    for (int j = 0; j < kUnitsAtOnce; ++j) {
      const std::int64_t unit = first_unit + (i + j) * kWarps;
      packs[j] = load_up_to(grad, unit * kUnitSize + lane * 4, count);
      counted[j] = unit * kUnitSize >= count || (flags[unit] & kUnitUncounted) == 0;
    }
#pragma unroll
    for (int j = 0; j < kUnitsAtOnce; ++j) {
      double squares = 0;
#pragma unroll
      for (int l = 0; l < 4; ++l) {
        const double x = to_float(packs[j][l]);
        squares += x * x;
      }
      sum += counted[j] ? squares : 0.0 * squares;  // NaN when not finite
    }
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(kSumThreads)
    sum_partials(const double* partials, double* sum, std::int64_t count) {
  __shared__ double scratch[kSumThreads / kWarpSize];
  double mine = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kSumThreads) {
    mine += partials[i];
  }
  mine = block_sum(mine, scratch);
  if (threadIdx.x == 0) {
    *sum = mine;
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const SquaredNormPartials& k) {
  const std::int64_t count = k.grad.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.grad.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    squared_norm_partials<T>
        <<<static_cast<unsigned>(num_norm_partials(count)), kThreads, 0, cuda_stream(stream)>>>(
            k.grad.as<T>(), k.unit_flags.as<std::uint8_t>(), k.partials.as<double>(), count);
  });
  check_launch("squared_norm_partials");
}

void run(OnCuda, Stream& stream, const SumPartials& k) {
  sum_partials<<<1, kSumThreads, 0, cuda_stream(stream)>>>(k.partials.as<double>(),
                                                           k.sum.as<double>(), k.partials.numel());
  check_launch("sum_partials");
}

}  // namespace bloomery
