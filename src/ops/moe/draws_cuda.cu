#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/moe/draws.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

// A thread has four columns of a token; body(element, uniform number).
template <class Body>
__global__ void for_draws(TokenPlaces places, RandomKey key, std::int64_t tokens, int columns,
                          Body body) {
  const int blocks = (columns + 3) / 4;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t t = i / blocks;
  if (t >= tokens) {
    return;
  }
  const int block = static_cast<int>(i % blocks);
  const RandomBlock bits =
      draw_bits(key, places.sample(t), places.place(t), static_cast<std::uint32_t>(block));
  for (int lane = 0; lane < 4 && 4 * block + lane < columns; ++lane) {
    body(t * columns + 4 * block + lane, uniform_of(bits[lane]));
  }
}

struct WriteDraw {
  float* y;
  bool gumbel;
  __device__ __forceinline__ void operator()(std::int64_t i, float uniform) const {
    y[i] = gumbel ? -logf(-logf(uniform)) : uniform;
  }
};

template <class T>
struct ApplyJitter {
  const T* x;
  T* y;
  float epsilon;
  bool add;
  __device__ __forceinline__ void operator()(std::int64_t i, float uniform) const {
    const float value = (1 + epsilon * (2 * uniform - 1)) * to_float(x[i]);
    y[i] = from_float<T>(add ? to_float(y[i]) + value : value);
  }
};

template <class Body>
void launch_draws(Stream& stream, const View& y, const TokenPlaces& places, RandomKey key,
                  const Body& body) {
  const std::int64_t blocks = y.rows() * ((y.columns() + 3) / 4);
  for_draws<<<num_blocks(blocks, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      places, key, y.rows(), static_cast<int>(y.columns()), body);
  check_launch("for_draws");
}

}  // namespace

void run(OnCuda, Stream& stream, const DrawTokens& k) {
  launch_draws(stream, k.y, k.places, k.key,
               WriteDraw{k.y.as<float>(), k.kind == DrawKind::gumbel});
}

void run(OnCuda, Stream& stream, const Jitter& k) {
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch_draws(stream, k.y, k.places, k.key,
                 ApplyJitter<T>{k.x.as<T>(), k.y.as<T>(), k.epsilon, k.add});
  });
}

}  // namespace bloomery
