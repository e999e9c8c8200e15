#include "device/cuda_check.h"
#include "ops/attention/relative_bias.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 128;

// Of views, which only the host can ask.
struct Extents {
  std::int64_t heads, distances, columns;
};
Extents extents(const Shape& by_distance, const Shape& table) {
  return {by_distance[0], by_distance[1], table[1]};
}

// One block per head.
template <class T>
__global__ void __launch_bounds__(kThreads)
    spread(const __grid_constant__ SpreadBias k, const __grid_constant__ Extents e) {
  const T* const column = static_cast<const T*>(k.table.data) + k.first_column + blockIdx.x;
  float* const to = static_cast<float*>(k.by_distance.data) + blockIdx.x * e.distances;
  for (std::int64_t i = threadIdx.x; i < e.distances; i += kThreads) {
    to[i] = to_float(column[k.buckets.bucket(i - e.distances / 2) * e.columns]) / k.scale;
  }
}

// One block per element of the table.
__global__ void __launch_bounds__(kThreads)
    gather(const __grid_constant__ GatherBias k, const __grid_constant__ Extents e) {
  __shared__ float scratch[kThreads / kWarpSize];
  const std::int64_t reach = e.distances / 2;
  const int b = static_cast<int>(blockIdx.x / e.columns);
  const std::int64_t head = blockIdx.x % e.columns - k.first_column;
  const bool exists = head >= 0 && head < e.heads && k.buckets.first[b] <= k.buckets.last[b];
  float sum = 0;
  if (exists) {
    const float* const from = static_cast<const float*>(k.by_distance.data) + head * e.distances;
    const std::int64_t last = distance_index(k.buckets.last[b], reach);
    for (std::int64_t i = distance_index(k.buckets.first[b], reach) + threadIdx.x; i <= last;
         i += kThreads) {
      sum += from[i];
    }
  }
  sum = block_sum(sum, scratch) / k.scale;
  if (threadIdx.x == 0) {
    float* const to = static_cast<float*>(k.table.data) + blockIdx.x;
    *to = k.add ? *to + sum : sum;
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const SpreadBias& k) {
  dispatch_device(k.table.dtype, [&](auto tag) {
    const Extents e = extents(k.by_distance.shape, k.table.shape);
    spread<typename decltype(tag)::type>
        <<<static_cast<unsigned>(e.heads), kThreads, 0, cuda_stream(stream)>>>(k, e);
    check_launch("spread_bias");
  });
}

void run(OnCuda, Stream& stream, const GatherBias& k) {
  const Extents e = extents(k.by_distance.shape, k.table.shape);
  gather<<<static_cast<unsigned>(k.buckets.count * e.columns), kThreads, 0, cuda_stream(stream)>>>(
      k, e);
  check_launch("gather_bias");
}

}  // namespace bloomery
