// A block takes some keys of one sequence and the query of one head; blocks of heads that share
// keys run at the same time, so that they read them from the cache of the chip. A key lies across a
// few lanes, 16 bytes in each; every such team of lanes has softmax sums of its own, which are put
// together at the end. Where there are too few sequences for the processors the keys of one are
// divided among blocks (their number depends on the capacity or the window, not on the lengths that
// only the device knows); the last of them to arrive adds up, in order of the keys. The block with
// the newest key keeps it and its value in the cache.
#include "device/launch_cuda.cuh"
#include "ops/cache/step_attention.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 4;              // keys that a team has under way
constexpr int kFewestKeys = 128;       // of a block
constexpr std::int64_t kEnough = 264;  // blocks: two for each processor of a large GPU

struct Problem {
  CachedAttention k;
  int heads;        // of a group, one for each block of the grid's z
  int block_keys;   // that a block takes; the last one fewer
  float* partials;  // [sequences * groups, splits, heads, head_dim + 2]: sums, maximum, total
};

// Softmax sums of one query over some keys, channels across the team.
template <int kChannels>
struct Softmax {
  float maximum = -INFINITY, total = 0, sums[kChannels] = {};

  __device__ __forceinline__ void rescale(float larger) {
    const float factor = maximum == larger ? 1.0f : __expf(maximum - larger);
    maximum = larger;
    total *= factor;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      sums[c] *= factor;
    }
  }
  template <class Value>
  __device__ __forceinline__ void add(float score, const Value& value) {
    if (score > maximum) {
      rescale(score);
    }
    const float weight = __expf(score - maximum);
    total += weight;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      sums[c] = fmaf(weight, to_float(value[c]), sums[c]);
    }
  }
  __device__ __forceinline__ void merge(float other_maximum, float other_total,
                                        const float* other_sums) {
    if (other_total > 0) {
      rescale(fmaxf(maximum, other_maximum));
      const float factor = __expf(other_maximum - maximum);
      total += other_total * factor;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        sums[c] += other_sums[c] * factor;
      }
    }
  }
};

template <int kHeadDim, class T>
struct Shape {
  static constexpr int kPack = kPackSize<T>;
  static constexpr int kTeam = kHeadDim / kPack;   // lanes of a key
  static constexpr int kTeams = kThreads / kTeam;  // keys at a time
  static constexpr int kPartial = kHeadDim + 2;
};

template <int kTeam>
__device__ __forceinline__ float team_sum(float value) {
#pragma unroll
  for (int offset = kTeam / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  }
  return value;
}

// Where the numbers of this block's sequence and group are.
template <int kHeadDim, class T>
struct Place {
  int sequence, group, num_keys, begin, end;
  const T* fresh;  // the new key, then its value
  const T* query;
  T *keys, *out;
  const std::int32_t* pages;  // of the slot; null: it has none
  std::int64_t stride;

  __device__ explicit Place(const Problem& p) {
    const CacheProblem& c = p.k.problem;
    sequence = static_cast<int>(blockIdx.x) / static_cast<int>(c.num_groups);
    group = static_cast<int>(blockIdx.x) % static_cast<int>(c.num_groups);
    num_keys = c.places.counts[sequence] > 0 ? c.places.lengths[sequence] + 1 : 0;
    const int first = static_cast<int>(p.k.first_key(num_keys));
    begin = min(first + static_cast<int>(blockIdx.y) * p.block_keys, num_keys);
    end = min(begin + p.block_keys, num_keys);
    stride = c.cache_stride();
    query = static_cast<const T*>(p.k.qkv.data) + sequence * c.qkv_stride() +
            group * (p.heads + 2) * kHeadDim;
    fresh = query + p.heads * kHeadDim;
    const std::int64_t slot = c.places.slots[sequence];
    pages = c.places.pages != nullptr ? c.places.pages + slot * c.places.pages_per_slot : nullptr;
    keys = static_cast<T*>(p.k.cache.data) + (pages != nullptr ? 0 : slot * c.capacity * stride) +
           group * 2 * kHeadDim;
    out = static_cast<T*>(p.k.out.data) +
          (std::int64_t{sequence} * c.num_groups + group) * p.heads * kHeadDim;
  }

  __device__ __forceinline__ T* key(int number) const {
    const std::int64_t token =
        pages != nullptr ? (std::int64_t{pages[number >> kCachePageLog2]} << kCachePageLog2) +
                               (number & (kCachePage - 1))
                         : number;
    return keys + token * stride;
  }
};

// The keys of this thread's team.
template <int kHeadDim, class T>
__device__ __forceinline__ void add_keys(const Problem& p, const Place<kHeadDim, T>& at,
                                         Softmax<kPackSize<T>>& softmax) {
  using S = Shape<kHeadDim, T>;
  const int channel = static_cast<int>(threadIdx.x) % S::kTeam * S::kPack;
  const int team = static_cast<int>(threadIdx.x) / S::kTeam;
  float query[S::kPack];
  const auto pack = load_pack<S::kPack>(at.query + blockIdx.z * kHeadDim + channel);
#pragma unroll
  for (int c = 0; c < S::kPack; ++c) {
    query[c] = to_float(pack[c]) * p.k.scale;
  }
  for (int first = at.begin; first < at.end; first += S::kTeams * kDepth) {
    Pack<T, S::kPack> key[kDepth], value[kDepth];
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const int number = min(first + i * S::kTeams + team, at.num_keys - 1);
      const T* const from = number == at.num_keys - 1 ? at.fresh : at.key(number);
      key[i] = load_pack<S::kPack>(from + channel);
      value[i] = load_pack<S::kPack>(from + kHeadDim + channel);
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float score = 0;
#pragma unroll
      for (int c = 0; c < S::kPack; ++c) {
        score = fmaf(query[c], to_float(key[i][c]), score);
      }
      score = team_sum<S::kTeam>(score);
      const int number = first + i * S::kTeams + team;
      if (number < at.end) {
        if (p.k.bias != nullptr) {
          score += p.k.bias_of<float>(at.group * p.heads + blockIdx.z, number, at.num_keys);
        }
        softmax.add(score, value[i]);
      }
    }
  }
}

// Puts the teams of the block together: thread c gets channel c.
template <int kHeadDim, class T>
__device__ __forceinline__ Softmax<1> merged(const Softmax<kPackSize<T>>& own,
                                             float (*shared)[kHeadDim + 2]) {
  using S = Shape<kHeadDim, T>;
  const int lane = static_cast<int>(threadIdx.x) % S::kTeam;
  const int team = static_cast<int>(threadIdx.x) / S::kTeam;
  __syncthreads();
#pragma unroll
  for (int c = 0; c < S::kPack; ++c) {
    shared[team][lane * S::kPack + c] = own.sums[c];
  }
  if (lane == 0) {
    shared[team][kHeadDim] = own.maximum;
    shared[team][kHeadDim + 1] = own.total;
  }
  __syncthreads();
  Softmax<1> all;
  if (threadIdx.x < kHeadDim) {
    for (int i = 0; i < S::kTeams; ++i) {
      all.merge(shared[i][kHeadDim], shared[i][kHeadDim + 1], &shared[i][threadIdx.x]);
    }
  }
  return all;
}

template <class T>
__device__ __forceinline__ T result(const Softmax<1>& softmax) {
  return from_float<T>(softmax.total > 0 ? softmax.sums[0] / softmax.total : 0.0f);
}

// Adds up what the blocks of a sequence and group have left.
template <int kHeadDim, class T>
__device__ void combine(const Problem& p, T* out) {
  const float* partial =
      p.partials + std::int64_t{blockIdx.x} * gridDim.y * p.heads * (kHeadDim + 2);
  for (int n = static_cast<int>(threadIdx.x); n < p.heads * kHeadDim; n += kThreads) {
    const int head = n / kHeadDim, channel = n % kHeadDim;
    Softmax<1> all;
    for (int split = 0; split < static_cast<int>(gridDim.y); ++split) {
      const float* const from = partial + (split * p.heads + head) * (kHeadDim + 2);
      const float sum = __ldcg(from + channel);
      all.merge(__ldcg(from + kHeadDim), __ldcg(from + kHeadDim + 1), &sum);
    }
    out[n] = result<T>(all);
  }
}

template <int kHeadDim, class T>
__global__ void __launch_bounds__(kThreads) attend(const __grid_constant__ Problem p) {
  using S = Shape<kHeadDim, T>;
  __shared__ float shared[S::kTeams][S::kPartial];
  __shared__ bool last;
  let_next_kernel_start();
  wait_for_kernels_before();
  const Place<kHeadDim, T> at(p);
  Softmax<S::kPack> softmax;
  if (at.begin < at.end) {
    add_keys(p, at, softmax);
  }
  if (at.end == at.num_keys && at.begin < at.end && blockIdx.z == 0) {
    for (int c = static_cast<int>(threadIdx.x); c < 2 * kHeadDim; c += kThreads) {
      at.key(at.num_keys - 1)[c] = at.fresh[c];
    }
  }
  const bool alone = gridDim.y == 1;
  const Softmax<1> all = merged<kHeadDim, T>(softmax, shared);
  if (threadIdx.x < kHeadDim) {
    if (alone) {
      at.out[blockIdx.z * kHeadDim + threadIdx.x] = result<T>(all);
    } else {
      float* const to =
          p.partials +
          ((std::int64_t{blockIdx.x} * gridDim.y + blockIdx.y) * p.heads + blockIdx.z) *
              S::kPartial;
      to[threadIdx.x] = all.sums[0];
      if (threadIdx.x == 0) {
        to[kHeadDim] = all.maximum;
        to[kHeadDim + 1] = all.total;
      }
    }
  }
  if (!alone) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      auto* const arrivals = static_cast<unsigned*>(p.k.arrivals.data);
      const unsigned final = gridDim.y * gridDim.z - 1;
      last = atomicInc(arrivals + blockIdx.x, final) == final;
    }
    __syncthreads();
    if (last) {
      __threadfence();
      combine<kHeadDim>(p, at.out);
    }
  }
}

// Divides the keys when there are fewer sequences and heads than processors.
int num_splits(const CacheProblem& c, std::int64_t most_keys) {
  const std::int64_t blocks = c.num_sequences * c.num_heads();
  const std::int64_t most = (most_keys + kFewestKeys - 1) / kFewestKeys;
  return static_cast<int>(std::min((kEnough + blocks - 1) / blocks, most));
}

template <int kHeadDim, class T>
bool launch_step(Stream& stream, const CachedAttention& k) {
  const CacheProblem& c = k.problem;
  const std::int64_t most_keys = k.window > 0 ? std::min(k.window, c.capacity) : c.capacity;
  const int splits = num_splits(c, most_keys);
  const std::int64_t blocks = c.num_sequences * c.num_groups;
  Problem p{.k = k,
            .heads = static_cast<int>(c.heads_per_group),
            .block_keys = static_cast<int>((most_keys + splits - 1) / splits),
            .partials = nullptr};
  Tensor partials;
  if (splits > 1) {
    partials =
        Tensor::empty(stream, DType::fp32, {blocks * splits * c.heads_per_group * (kHeadDim + 2)});
    p.partials = static_cast<float*>(partials.data());
  }
  launch_kernel(stream, attend<kHeadDim, T>,
                dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(splits),
                     static_cast<unsigned>(c.heads_per_group)),
                kThreads, p);
  return true;
}

}  // namespace

bool attend_step(Stream& stream, const CachedAttention& k) {
  const CacheProblem& c = k.problem;
  const auto aligned = [](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  if (c.length != 1 || !aligned(k.cache.data) || !aligned(k.qkv.data) ||
      c.num_sequences * c.num_groups > INT32_MAX || c.heads_per_group > 65535 ||
      c.capacity > INT32_MAX / 2) {
    return false;
  }
  bool done = false;
  dispatch_device(c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    done = c.head_dim == 64    ? launch_step<64, T>(stream, k)
           : c.head_dim == 128 ? launch_step<128, T>(stream, k)
           : c.head_dim == 32  ? launch_step<32, T>(stream, k)
           : c.head_dim == 16  ? launch_step<16, T>(stream, k)
                               : false;
  });
  return done;
}

}  // namespace bloomery
