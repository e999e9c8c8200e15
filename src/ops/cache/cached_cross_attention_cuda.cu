// One block per (token, head). A warp takes a key at a time, its lanes the channels; each warp has
// a softmax of its keys of its own, and the block joins them.
#include "device/cuda_check.h"
#include "ops/cache/cached_cross_attention.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarpSize;
constexpr int kMaxHeadDim = 1024;

// What a warp has of the softmax: the highest score, the sum of exp(score - highest), and the sums
// of values weighted so, lane by lane.
template <int kChannels>
struct Part {
  float highest = -INFINITY, total = 0, sums[kChannels] = {};
};

// kChannels of the head for each lane, 32 apart.
template <int kChannels, class T>
__device__ Part<kChannels> attend_keys(const CachedCrossAttention& k, const T* query, const T* keys,
                                       int num_keys) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int head_dim = static_cast<int>(k.head_dim);
  float q[kChannels];
#pragma unroll
  for (int n = 0; n < kChannels; ++n) {
    const int c = lane + n * kWarpSize;
    q[n] = c < head_dim ? to_float(query[c]) * k.scale : 0.0f;
  }
  Part<kChannels> part;
  for (int j = warp; j < num_keys; j += kWarps) {
    const T* const key = keys + j * k.key_stride();
    float score = 0;
#pragma unroll
    for (int n = 0; n < kChannels; ++n) {
      const int c = lane + n * kWarpSize;
      score += c < head_dim ? q[n] * to_float(key[c]) : 0.0f;
    }
    score = warp_sum(score);
    const float higher = fmaxf(part.highest, score);
    const float rescale = expf(part.highest - higher), weight = expf(score - higher);
    part.highest = higher;
    part.total = part.total * rescale + weight;
#pragma unroll
    for (int n = 0; n < kChannels; ++n) {
      const int c = lane + n * kWarpSize;
      const float value = c < head_dim ? to_float(key[head_dim + c]) : 0.0f;
      part.sums[n] = part.sums[n] * rescale + weight * value;
    }
  }
  return part;
}

// The parts of all warps, in their order.
template <int kChannels, class T>
__device__ void write_joined(const Part<kChannels>& part, int head_dim, T* out) {
  __shared__ float highest[kWarps], totals[kWarps], sums[kWarps][kWarpSize];
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (lane == 0) {
    highest[warp] = part.highest;
    totals[warp] = part.total;
  }
  __syncthreads();
  float all = -INFINITY, total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    all = fmaxf(all, highest[w]);
  }
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    total += totals[w] > 0 ? totals[w] * expf(highest[w] - all) : 0.0f;
  }
  const float own = part.total > 0 ? expf(part.highest - all) / total : 0.0f;
#pragma unroll
  for (int n = 0; n < kChannels; ++n) {
    sums[warp][lane] = part.sums[n] * own;
    __syncthreads();
    const int c = lane + n * kWarpSize;
    if (warp == 0 && c < head_dim) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        sum += sums[w][lane];
      }
      out[c] = from_float<T>(sum);
    }
    __syncthreads();
  }
}

template <int kChannels, class T>
__global__ void __launch_bounds__(kThreads) attend(const __grid_constant__ CachedCrossAttention k) {
  const std::int64_t token = blockIdx.x;
  const int row = static_cast<int>(token / k.length), i = static_cast<int>(token % k.length);
  const int head = static_cast<int>(blockIdx.y), head_dim = static_cast<int>(k.head_dim);
  const int group = head / static_cast<int>(k.heads_per_group);
  const std::int64_t at = (token * k.num_heads() + head) * head_dim;
  const int text = k.texts[k.slots[row]];
  const int num_keys = i < k.counts[row] ? k.text_lengths[text] : 0;
  const T* const keys = static_cast<const T*>(k.kv.data) + text * k.text_length * k.key_stride() +
                        group * 2 * k.head_dim;
  const Part<kChannels> part =
      attend_keys<kChannels>(k, static_cast<const T*>(k.q.data) + at, keys, num_keys);
  write_joined(part, head_dim, static_cast<T*>(k.out.data) + at);
}

// The kernel whose lanes hold all channels of a head.
template <class T>
auto kernel_for(std::int64_t head_dim) {
  return head_dim <= 64    ? attend<2, T>
         : head_dim <= 128 ? attend<4, T>
         : head_dim <= 256 ? attend<8, T>
                           : attend<kMaxHeadDim / kWarpSize, T>;
}

}  // namespace

void run(OnCuda, Stream& stream, const CachedCrossAttention& k) {
  const std::int64_t tokens = k.num_rows * k.length;
  check(k.head_dim <= kMaxHeadDim, "cached_cross_attention: head_dim ", k.head_dim,
        " is more than the ", kMaxHeadDim, " that CUDA kernels take");
  check(tokens <= INT32_MAX && k.num_heads() <= 65535, "cached_cross_attention: ", tokens,
        " tokens and ", k.num_heads(), " heads are too many for one launch");
  if (tokens == 0) {
    return;
  }
  dispatch_device(k.dtype, [&](auto tag) {
    const auto kernel = kernel_for<typename decltype(tag)::type>(k.head_dim);
    const dim3 grid(static_cast<unsigned>(tokens), static_cast<unsigned>(k.num_heads()));
    kernel<<<grid, kThreads, 0, cuda_stream(stream)>>>(k);
    check_launch("cached_cross_attention");
  });
}

}  // namespace bloomery
