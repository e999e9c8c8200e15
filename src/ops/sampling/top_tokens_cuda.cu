// One block per row, which looks for the best token as often as tokens are wanted, each time below
// the last one: they are few.
#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/sampling/sampling.h"

namespace bloomery {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarpSize;

// Score first, then the lowest token; larger is likelier, and none is 0.
__device__ __forceinline__ unsigned long long place_of(float score, int token) {
  const std::uint32_t bits = __float_as_uint(score);
  const std::uint32_t key = bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u);
  return static_cast<unsigned long long>(key) << 32 | ~static_cast<std::uint32_t>(token);
}

// The largest value of a block, in every thread. The scratch is free again after a barrier.
__device__ unsigned long long block_largest(unsigned long long value, unsigned long long* scratch) {
  value = warp_max(value);
  if (threadIdx.x % kWarpSize == 0) {
    scratch[threadIdx.x / kWarpSize] = value;
  }
  __syncthreads();
  value = warp_max(scratch[threadIdx.x % kWarps]);
  __syncthreads();
  return value;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    top_tokens(const __grid_constant__ TopTokens k, std::int64_t columns) {
  __shared__ unsigned long long places[kWarps];
  __shared__ float sums[kWarps];
  const std::int64_t i = blockIdx.x;
  if (k.active[i] == 0) {
    return;
  }
  const T* const logits = static_cast<const T*>(k.logits.data) +
                          (k.logit_rows != nullptr ? k.logit_rows[i] : i) * columns;
  const int vocabulary = static_cast<int>(k.vocabulary);
  Drawn* const out = k.ring + (*k.step % k.ring_steps * k.ring_rows + i) *
                                  static_cast<std::int64_t>(TopTokens::kMost);
  unsigned long long last = ~0ull;
  float largest = 0, total = 0;
  for (int n = 0; n < TopTokens::kMost; ++n) {
    unsigned long long best = 0;
    for (int token = static_cast<int>(threadIdx.x); token < vocabulary; token += kThreads) {
      const unsigned long long place = place_of(to_float(logits[token]), token);
      best = place < last && place > best ? place : best;
    }
    best = block_largest(best, places);
    const auto token = static_cast<int>(~static_cast<std::uint32_t>(best));
    if (n == 0) {
      largest = to_float(logits[min(max(token, 0), vocabulary - 1)]);
      float sum = 0;
      for (int t = static_cast<int>(threadIdx.x); t < vocabulary; t += kThreads) {
        sum += __expf(to_float(logits[t]) - largest);
      }
      total = block_sum(sum, sums);
    }
    if (threadIdx.x == 0) {
      out[n] =
          best == 0 ? Drawn{} : Drawn{token, to_float(logits[token]) - (largest + logf(total))};
    }
    last = best;
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const TopTokens& k) {
  if (k.count == 0) {
    return;
  }
  dispatch_device(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    top_tokens<T><<<static_cast<unsigned>(k.count), kThreads, 0, cuda_stream(stream)>>>(
        k, k.logits.columns());
    check_launch("top_tokens");
  });
}

}  // namespace bloomery
