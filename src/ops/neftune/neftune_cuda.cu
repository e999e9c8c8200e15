#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/neftune/neftune.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kLanes = 8;

// A thread per block of eight channels.
template <class T>
__global__ void add_noise_kernel(T* x, std::int64_t count, std::int64_t columns,
                                 std::int64_t per_row, TokenPlaces places, std::int64_t first_token,
                                 RandomKey key, float size) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const std::int64_t row = i / per_row, first = i % per_row * kLanes;
  const std::int64_t token = first_token + row;
  const RandomBlock block = dropout_block(key, places.sample(token), places.place(token), 0,
                                          static_cast<std::uint32_t>(first / kLanes));
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (first + lane < columns) {
      T* const at = x + row * columns + first + lane;
      const float noise = size * centred(block[lane / 2] >> (16 * (lane % 2)));
      *at = from_float<T>(to_float(*at) + noise);
    }
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const AddNoise& k) {
  const std::int64_t columns = k.x.shape.back(), per_row = (columns + kLanes - 1) / kLanes;
  const std::int64_t count = k.x.shape.rows() * per_row;
  if (count == 0) {
    return;
  }
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    add_noise_kernel<T><<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.x.as<T>(), count, columns, per_row, k.places, k.first_token, k.key, k.size);
    check_launch("add_noise");
  });
}

}  // namespace bloomery
