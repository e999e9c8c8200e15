#include <algorithm>

#include "device/launch_cuda.cuh"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/rotary/rotary.h"

namespace bloomery {
namespace {

constexpr int kThreads = 128;

// What the device needs of Rotary; by value, in constant memory.
struct Problem {
  const std::int32_t* positions;
  int num_groups, heads, turned, head_dim, num_pairs;
  bool inverse;
  float magnitude;
  double frequencies[kMaxRotaryPairs];
};

// Cosine and sine of a token's angles, shared by all its heads. The product with the position and
// its reduction to [-pi, pi] are in double precision, so that the angle is as accurate at position
// 100000 as at position 1.
__device__ void set_angles(const Problem& p, std::int64_t token, float2* angles) {
  const double position = p.inverse ? -double(p.positions[token]) : double(p.positions[token]);
  for (int i = static_cast<int>(threadIdx.x); i < p.num_pairs; i += kThreads) {
    const double turns = position * p.frequencies[i] * 0.15915494309189535;
    const auto angle = static_cast<float>((turns - rint(turns)) * 6.283185307179586);
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    angles[i] = {cosine * p.magnitude, sine * p.magnitude};
  }
}

// kCount channels of `first` and of `second` at a time: pairs (first[j], second[j]).
template <int kCount, class T>
__device__ void turn_halves(T* first, T* second, const float2* angles) {
  Pack<T, kCount> x = load_pack<kCount>(first), y = load_pack<kCount>(second);
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float a = to_float(x[j]), b = to_float(y[j]);
    x[j] = from_float<T>(a * angles[j].x - b * angles[j].y);
    y[j] = from_float<T>(b * angles[j].x + a * angles[j].y);
  }
  store_pack(first, x);
  store_pack(second, y);
}

// kCount pairs of neighbours.
template <int kCount, class T>
__device__ void turn_neighbours(T* data, const float2* angles) {
  Pack<T, 2 * kCount> x = load_pack<2 * kCount>(data);
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float a = to_float(x[2 * j]), b = to_float(x[2 * j + 1]);
    x[2 * j] = from_float<T>(a * angles[j].x - b * angles[j].y);
    x[2 * j + 1] = from_float<T>(b * angles[j].x + a * angles[j].y);
  }
  store_pack(data, x);
}

// One block per token; a thread takes kCount pairs of one head at a time.
template <int kCount, bool kInterleaved, class T>
__global__ void __launch_bounds__(kThreads) turn(T* data, const Problem p) {
  __shared__ float2 angles[kMaxRotaryPairs];
  const std::int64_t token = blockIdx.x;
  let_next_kernel_start();
  wait_for_kernels_before();
  set_angles(p, token, angles);
  __syncthreads();
  const int chunks = p.num_pairs / kCount, heads = p.num_groups * p.turned;
  T* const row = data + token * p.num_groups * p.heads * p.head_dim;
  for (int item = static_cast<int>(threadIdx.x); item < heads * chunks; item += kThreads) {
    const int head = item / chunks, pair = item % chunks * kCount;
    T* const start = row + (head / p.turned * p.heads + head % p.turned) * p.head_dim;
    if constexpr (!kInterleaved) {
      turn_halves<kCount>(start + pair, start + pair + p.num_pairs, angles + pair);
    } else if constexpr (kCount > 1) {
      turn_neighbours<kCount>(start + 2 * pair, angles + pair);
    } else {  // nothing is aligned
      turn_halves<1>(start + 2 * pair, start + 2 * pair + 1, angles + pair);
    }
  }
}

// In packs of 16 bytes if everything is aligned to them; interleaved pairs lie in one pack.
template <bool kInterleaved, class T>
void launch_turn(Stream& stream, const Rotary& k, const Problem& p) {
  constexpr int kCount = kInterleaved ? kPackSize<T> / 2 : kPackSize<T>;
  const bool aligned = reinterpret_cast<std::uintptr_t>(k.data.data) % 16 == 0 &&
                       k.head_dim % kPackSize<T> == 0 && p.num_pairs % kCount == 0;
  const auto kernel = aligned ? turn<kCount, kInterleaved, T> : turn<1, kInterleaved, T>;
  launch_kernel(stream, kernel, dim3(static_cast<unsigned>(k.num_tokens)), kThreads, k.data.as<T>(),
                p);
}

}  // namespace

void run(OnCuda, Stream& stream, const Rotary& k) {
  if (k.num_tokens == 0) {
    return;
  }
  Problem p{.positions = k.positions.as<std::int32_t>(),
            .num_groups = static_cast<int>(k.num_groups),
            .heads = static_cast<int>(k.heads),
            .turned = static_cast<int>(k.turned),
            .head_dim = static_cast<int>(k.head_dim),
            .num_pairs = static_cast<int>(k.table.num_pairs),
            .inverse = k.inverse,
            .magnitude = static_cast<float>(k.table.magnitude),
            .frequencies = {}};
  std::copy_n(k.table.frequencies.begin(), k.table.num_pairs, p.frequencies);
  dispatch_device(k.data.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (k.interleaved) {
      launch_turn<true, T>(stream, k, p);
    } else {
      launch_turn<false, T>(stream, k, p);
    }
  });
}

}  // namespace bloomery
