#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/fake_quantization/fake_quantization.h"
#include "ops/fake_quantization/grid.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerBlock = 16 * kThreads;  // elements, at least

// The largest, whatever the order: floats of one sign are ordered as their bits, negative ones in
// reverse.
__device__ void raise_to(float* to, float value) {
  value += 0.0f;  // no negative zero
  if (value >= 0) {
    atomicMax(reinterpret_cast<int*>(to), __float_as_int(value));
  } else {
    atomicMin(reinterpret_cast<unsigned int*>(to), __float_as_uint(value));
  }
}

__global__ void clear_ranges(float* ranges, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) {
    ranges[i] = -INFINITY;
  }
}

// Blocks (x, y): part x of group y.
template <class T>
__global__ void find_ranges(const T* x, float* ranges, GroupPlaces places) {
  const std::int64_t end = places.begin(blockIdx.y + 1);
  float low = -INFINITY, high = -INFINITY;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i =
           places.begin(blockIdx.y) + std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
       i < end; i += step) {
    const float value = to_float(x[i]);
    low = fmaxf(low, -value);
    high = fmaxf(high, value);
  }
  low = warp_max(low);
  high = warp_max(high);
  if (threadIdx.x % kWarpSize == 0 && low > -INFINITY) {
    raise_to(ranges + 2 * blockIdx.y, low);
    raise_to(ranges + 2 * blockIdx.y + 1, high);
  }
}

template <class T>
struct CudaArithmetic {
  __device__ static float stored(float value) { return to_float(from_float<T>(value)); }
  __device__ static float nearest(float value) { return rintf(value); }
  __device__ static float product(float a, float b) { return __fmul_rn(a, b); }  // never fused
};

template <class T>
__global__ void fake_quantize(const T* x, T* y, const float* ranges, GroupPlaces places, int bits,
                              bool symmetric, bool wide) {
  using Arithmetic = CudaArithmetic<T>;
  const Grid<float> grid = make_grid<Arithmetic>(-ranges[2 * blockIdx.y],
                                                 ranges[2 * blockIdx.y + 1], bits, symmetric, wide);
  const std::int64_t end = places.begin(blockIdx.y + 1);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i =
           places.begin(blockIdx.y) + std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
       i < end; i += step) {
    y[i] = from_float<T>(snap<Arithmetic>(grid, to_float(x[i])));
  }
}

__global__ void follow_ranges(const float* range, const float* seen, float* to, float* largest,
                              std::int64_t count, float momentum) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const RangeEnds seen_ends{seen[2 * i], seen[2 * i + 1]};
  const RangeEnds made = followed({range[2 * i], range[2 * i + 1]}, seen_ends, momentum);
  to[2 * i] = made.negative_min;
  to[2 * i + 1] = made.max;
  if (largest != nullptr) {
    largest[2 * i] = fmaxf(largest[2 * i], seen_ends.negative_min);
    largest[2 * i + 1] = fmaxf(largest[2 * i + 1], seen_ends.max);
  }
}

dim3 blocks_of(const GroupPlaces& places) {
  constexpr std::int64_t kMostParts = 512;
  const std::int64_t parts = (places.group_size + kPerBlock - 1) / kPerBlock;
  return {static_cast<unsigned int>(parts > kMostParts ? kMostParts
                                    : parts < 1        ? 1
                                                       : parts),
          static_cast<unsigned int>(places.groups)};
}

}  // namespace

void run(OnCuda, Stream& stream, const FindRanges& k) {
  const std::int64_t count = 2 * k.places.groups;
  float* const ranges = k.ranges.as<float>();
  if (!k.raise) {
    clear_ranges<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(ranges, count);
    check_launch("clear_ranges");
  }
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    find_ranges<T>
        <<<blocks_of(k.places), kThreads, 0, cuda_stream(stream)>>>(k.x.as<T>(), ranges, k.places);
    check_launch("find_ranges");
  });
}

void run(OnCuda, Stream& stream, const FakeQuantize& k) {
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fake_quantize<T><<<blocks_of(k.places), kThreads, 0, cuda_stream(stream)>>>(
        k.x.as<T>(), k.y.as<T>(), k.ranges.as<float>(), k.places, k.bits, k.symmetric,
        !k.own_ranges);
    check_launch("fake_quantize");
  });
}

void run(OnCuda, Stream& stream, const FollowRanges& k) {
  const std::int64_t count = k.to.shape.numel() / 2;
  float* const largest = k.largest.data != nullptr ? k.largest.as<float>() : nullptr;
  follow_ranges<<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      k.range.as<float>(), k.seen.as<float>(), k.to.as<float>(), largest, count, k.momentum);
  check_launch("follow_ranges");
}

}  // namespace bloomery
