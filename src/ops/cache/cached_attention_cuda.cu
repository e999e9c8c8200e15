// Several new tokens of a sequence: one block per (token, head). Keys are taken in tiles of one per
// thread: each thread computes one score, then the threads divide channels and keys of the tile
// among themselves for the values. A single token of each sequence goes to step_attention_cuda.cu
// where its kernel can.
#include "device/cuda_check.h"
#include "ops/cache/cached_attention.h"
#include "ops/cache/group_attention.h"
#include "ops/cache/step_attention.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;
constexpr int kMaxHeadDim = 1024;
constexpr int kMaxChannels = kMaxHeadDim / kThreads;  // of one thread

struct Shared {
  float query[kMaxHeadDim];
  float weights[kThreads];  // of the keys of a tile
  float sums[kThreads];
  float scratch[kWarps];
};

__device__ float block_max(float value, float* scratch) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kWarpSize == 0) {
    scratch[warp] = value;
  }
  __syncthreads();
  float largest = scratch[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) {
    largest = fmaxf(largest, scratch[i]);
  }
  return largest;
}

template <int kPack, class T>
__device__ float dot(const float* query, const T* key, int head_dim) {
  float sum = 0;
  for (int c = 0; c < head_dim; c += kPack) {
    const Pack<T, kPack> numbers = load_pack<kPack>(key + c);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      sum += query[c + j] * to_float(numbers[j]);
    }
  }
  return sum;
}

// The channels of a head over the threads: `width` threads for one key, `parts` keys at once.
struct Division {
  int width, parts, part, channel;
  __device__ explicit Division(int head_dim) {
    width = min((head_dim + kWarpSize - 1) / kWarpSize * kWarpSize, kThreads);
    parts = kThreads / width;
    part = static_cast<int>(threadIdx.x) / width;  // `parts`: this thread is left over
    channel = static_cast<int>(threadIdx.x) % width;
  }
};

// Adds the values of a tile, weighted; values(j) are those of its key j.
template <class Values>
__device__ void add_values(const Values& values, int count, int head_dim, const Division& d,
                           const Shared& shared, float rescale, float* out) {
#pragma unroll
  for (int n = 0; n < kMaxChannels; ++n) {
    const int c = d.channel + n * kThreads;
    if (c < head_dim && d.part < d.parts) {
      float sum = out[n] * rescale;
      for (int j = d.part; j < count; j += d.parts) {
        sum += shared.weights[j] * to_float(values(j)[c]);
      }
      out[n] = sum;
    }
  }
}

// Sums what the parts have and writes it.
template <class T>
__device__ void write_out(const float* out, float factor, int head_dim, const Division& d,
                          Shared& shared, T* to) {
#pragma unroll
  for (int n = 0; n < kMaxChannels; ++n) {
    __syncthreads();
    shared.sums[threadIdx.x] = out[n];
    __syncthreads();
    const int c = d.channel + n * kThreads;
    if (d.part == 0 && c < head_dim) {
      float sum = 0;
      for (int part = 0; part < d.parts; ++part) {
        sum += shared.sums[part * d.width + d.channel];
      }
      to[c] = from_float<T>(sum * factor);
    }
  }
}

template <int kPack, class T>
__global__ void __launch_bounds__(kThreads) attend(const __grid_constant__ CachedAttention k) {
  __shared__ Shared shared;
  const CacheProblem& p = k.problem;
  const std::int64_t token = blockIdx.x;
  const int sequence = static_cast<int>(token / p.length), i = static_cast<int>(token % p.length);
  const int head = static_cast<int>(blockIdx.y), head_dim = static_cast<int>(p.head_dim);
  const int group = head / static_cast<int>(p.heads_per_group);
  T* const to = static_cast<T*>(k.out.data) + (token * p.num_heads() + head) * head_dim;
  const int num_keys = i < p.places.counts[sequence] ? p.places.lengths[sequence] + i + 1 : 0;
  const T* const query =
      static_cast<const T*>(k.qkv.data) + token * p.qkv_stride() + (head + 2 * group) * p.head_dim;
  const std::int64_t stride = p.cache_stride();
  const int slot = p.places.slots[sequence];
  const auto key = [&](int number) {
    return static_cast<const T*>(k.cache.data) + p.token(slot, number) * stride +
           group * 2 * p.head_dim;
  };
  const auto thread = static_cast<int>(threadIdx.x);
  for (int c = thread; c < head_dim; c += kThreads) {
    shared.query[c] = to_float(query[c]) * k.scale;
  }
  __syncthreads();

  const Division division(head_dim);
  float out[kMaxChannels] = {}, maximum = -INFINITY, sum = 0;  // sum: of this thread's keys
  for (int tile = static_cast<int>(k.first_key(num_keys)); tile < num_keys; tile += kThreads) {
    const int count = min(kThreads, num_keys - tile);
    float score =
        thread < count ? dot<kPack>(shared.query, key(tile + thread), head_dim) : -INFINITY;
    if (k.bias != nullptr && thread < count) {
      score += k.bias_of<float>(head, tile + thread, num_keys);
    }
    const float larger = fmaxf(maximum, block_max(score, shared.scratch));
    const float rescale = expf(maximum - larger), weight = expf(score - larger);
    maximum = larger;
    sum = sum * rescale + weight;
    shared.weights[thread] = weight;  // block_max has waited for the readers of the last tile
    __syncthreads();
    add_values([&](int j) { return key(tile + j) + head_dim; }, count, head_dim, division, shared,
               rescale, out);
  }
  const float total = block_sum(sum, shared.scratch);
  write_out(out, total > 0 ? 1 / total : 0.0f, head_dim, division, shared, to);
}

// One block per token; keys and values of a group lie together in both buffers.
template <class T>
__global__ void __launch_bounds__(kThreads) append(const __grid_constant__ AppendToCache k) {
  const CacheProblem& p = k.problem;
  const std::int64_t token = blockIdx.x;
  const int sequence = static_cast<int>(token / p.length), i = static_cast<int>(token % p.length);
  if (i >= p.places.counts[sequence]) {
    return;
  }
  const int pair = 2 * static_cast<int>(p.head_dim);
  const T* const from = static_cast<const T*>(k.qkv.data) + token * p.qkv_stride();
  const std::int64_t place = p.token(p.places.slots[sequence], p.places.lengths[sequence] + i);
  T* const to = static_cast<T*>(k.cache.data) + place * p.cache_stride();
  for (int n = static_cast<int>(threadIdx.x); n < p.num_groups * pair; n += kThreads) {
    const int group = n / pair;
    to[n] = from[(group + 1) * p.heads_per_group * p.head_dim + n];
  }
}

// One block per token.
template <class T>
__global__ void __launch_bounds__(kThreads) gather(const __grid_constant__ GatherFromCache k) {
  const CacheProblem& p = k.problem;
  const std::int64_t stride = p.cache_stride();
  const T* const from =
      static_cast<const T*>(k.cache.data) + p.token(p.places.slots[0], blockIdx.x) * stride;
  T* const to = static_cast<T*>(k.kv.data) + blockIdx.x * stride;
  for (std::int64_t n = threadIdx.x; n < stride; n += kThreads) {
    to[n] = from[n];
  }
}

bool aligned_to_packs(const CachedAttention& k) {
  return reinterpret_cast<std::uintptr_t>(k.cache.data) % 16 == 0 &&
         k.problem.head_dim * static_cast<std::int64_t>(size_of(k.problem.dtype)) % 16 == 0;
}

}  // namespace

void run(OnCuda, Stream& stream, const CachedAttention& k) {
  const CacheProblem& p = k.problem;
  const std::int64_t tokens = p.num_sequences * p.length;
  check(p.head_dim <= kMaxHeadDim, "cached_attention: head_dim ", p.head_dim, " is more than the ",
        kMaxHeadDim, " that CUDA kernels take");
  check(tokens <= INT32_MAX && p.num_heads() <= 65535, "cached_attention: ", tokens, " tokens and ",
        p.num_heads(), " heads are too many for one launch");
  if (tokens == 0 || attend_groups(stream, k) || attend_step(stream, k)) {
    return;
  }
  run(OnCuda{}, stream, AppendToCache{.problem = p, .qkv = k.qkv, .cache = k.cache});
  dispatch_device(p.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned_to_packs(k) ? attend<kPackSize<T>, T> : attend<1, T>;
    const dim3 grid(static_cast<unsigned>(tokens), static_cast<unsigned>(p.num_heads()));
    kernel<<<grid, kThreads, 0, cuda_stream(stream)>>>(k);
    check_launch("cached_attention");
  });
}

void run(OnCuda, Stream& stream, const AppendToCache& k) {
  const CacheProblem& p = k.problem;
  const std::int64_t tokens = p.num_sequences * p.length;
  if (tokens == 0) {
    return;
  }
  dispatch_device(p.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    append<T><<<static_cast<unsigned>(tokens), kThreads, 0, cuda_stream(stream)>>>(k);
    check_launch("append_to_cache");
  });
}

void run(OnCuda, Stream& stream, const GatherFromCache& k) {
  dispatch_device(k.problem.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    gather<T><<<static_cast<unsigned>(k.kv.rows()), kThreads, 0, cuda_stream(stream)>>>(k);
    check_launch("gather_from_cache");
  });
}

}  // namespace bloomery
