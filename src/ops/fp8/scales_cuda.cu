#include "device/cuda_check.h"
#include "device/warp.cuh"
#include "ops/fp8/scales.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

__global__ void scale_of_amax(const float* amax, float* scale, float* inverse, float largest) {
  const float made = scale_of(*amax, largest, 1, 1);
  *scale = made;
  *inverse = 1 / made;
}

// A block for each tensor. Histories move up piece by piece, the last first.
__global__ void update_scales(float* amaxes, float* rows, float* inverse, std::int64_t stride,
                              const float* largest, std::int64_t length, float margin_factor,
                              float interval, bool most_recent) {
  __shared__ float maxima[kThreads / kWarpSize];
  float* const row = rows + blockIdx.x * length;
  float* const history = row + ScaleRow::kHistory;
  const std::int64_t count = length - ScaleRow::kHistory;
  const float amax = amaxes[blockIdx.x];
  const float newest = isfinite(amax) ? amax : 0;
  float seen = newest;
  for (std::int64_t end = count; end > 0; end -= kThreads) {
    const std::int64_t i = end - 1 - threadIdx.x;
    const float moved = i > 0 ? history[i - 1] : newest;
    __syncthreads();
    if (i >= 0) {
      history[i] = moved;
      seen = moved > seen ? moved : seen;
    }
    __syncthreads();
  }
  seen = warp_max(seen);
  if (threadIdx.x % kWarpSize == 0) {
    maxima[threadIdx.x / kWarpSize] = seen;
  }
  __syncthreads();
  if (threadIdx.x > 0) {
    return;
  }
  for (const float other : maxima) {
    seen = other > seen ? other : seen;
  }
  amaxes[blockIdx.x] = 0;
  float scale = row[ScaleRow::kScale];
  const float age = row[ScaleRow::kAge] + 1;
  if (age >= interval) {
    scale = scale_of(most_recent ? newest : seen, largest[blockIdx.x], margin_factor, scale);
  }
  row[ScaleRow::kScale] = scale;
  row[ScaleRow::kAge] = age >= interval ? 0 : age;
  inverse[blockIdx.x * stride] = 1 / scale;
}

}  // namespace

void run(OnCuda, Stream& stream, const ScaleOfAmax& k) {
  scale_of_amax<<<1, 1, 0, cuda_stream(stream)>>>(k.amax.as<float>(), k.scale.as<float>(),
                                                  k.inverse_scale.as<float>(), k.largest);
  check_launch("scale_of_amax");
}

void run(OnCuda, Stream& stream, const UpdateScales& k) {
  const auto tensors = static_cast<unsigned>(k.rows.rows());
  if (tensors == 0) {
    return;
  }
  update_scales<<<tensors, kThreads, 0, cuda_stream(stream)>>>(
      k.amax.as<float>(), k.rows.as<float>(), k.inverse.as<float>(), k.inverse.columns(),
      k.largest.as<float>(), k.rows.columns(), k.margin_factor, k.interval, k.most_recent);
  check_launch("update_scales");
}

}  // namespace bloomery
