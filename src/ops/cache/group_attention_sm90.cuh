// A block takes some keys of one sequence and all query heads of a group, up to 16, as the rows of
// tensor-core products: keys and values are read once for all of them, by asynchronous copies into
// a ring of tiles of shared memory. Each warp takes 16 keys of a tile, with softmax sums of its
// own, which are put together at the end. Where there are too few sequences for the processors the
// keys of one are divided among the blocks of a cluster (their number depends on the capacity or
// the window, not on the lengths that only the device knows), which add up, each some channels, in
// order of the keys. The block with the newest key keeps it and its value in the cache.
//
// The cache and where its sequences stand were written by a step before, so that a block asks for
// keys before the kernel that makes the queries ends. What turns by positions does so on the way.
#pragma once

#include "device/cluster_sm90.cuh"
#include "device/launch_cuda.cuh"
#include "ops/attention/mma_sm80.cuh"
#include "ops/cache/cached_attention.h"
#include "ops/rotary/rotary_table.h"

namespace bloomery::group_attention {

using attention_cuda::SharedTile;

constexpr int kHeads = 16;  // of a block, at most
constexpr int kWarpKeys = 16;
constexpr int kStages = 3;
constexpr float kLog2E = 1.4426950408889634f;

// By what queries and new keys turn; no pairs: they do not.
struct Turn {
  const std::int32_t* positions = nullptr;
  int pairs = 0;
  bool interleaved = false;
  float magnitude = 1;
  double frequencies[kMaxRotaryPairs];
};

struct Problem {
  CachedAttention k;
  Turn turn;
  int heads;       // of a group
  int block_keys;  // that a block takes; the last one fewer
};

template <int kHeadDim, int kWarps, class T>
struct Shared {
  static constexpr int kThreads = kWarps * kWarpSize, kTileKeys = kWarps * kWarpKeys;
  static constexpr int kTileBytes = kTileKeys * kHeadDim * 2;
  static constexpr int kPitch = kHeadDim + 4;
  alignas(128) unsigned char tiles[kStages][2][kTileBytes];  // keys, values
  alignas(128) T query[kHeads * kHeadDim];
  alignas(16) T fresh[2][kHeadDim];  // the new key, turned, and its value
  float2 angles[kHeadDim / 2];
  float2 weights[kWarps][kHeads];  // maximum and total

  // Sums of the warps, where the tiles were.
  __device__ const float* sums(int warp) const {
    return reinterpret_cast<const float*>(tiles) + warp * kHeads * kPitch;
  }
  __device__ float* sums(int warp) {
    static_assert(kWarps * kHeads * kPitch * 4 <= sizeof tiles);
    return reinterpret_cast<float*>(tiles) + warp * kHeads * kPitch;
  }
};

// Where the numbers of this block's sequence and group are.
template <int kHeadDim, class T>
struct Place {
  int sequence, group, num_keys, begin, end, first_head, heads;
  const T *query, *fresh;  // [heads, head_dim]; the new key, then its value
  T *keys, *out;
  const std::int32_t* pages;  // of the slot; null: it has none
  std::int64_t stride;

  __device__ explicit Place(const Problem& p) {
    const CacheProblem& c = p.k.problem;
    sequence = static_cast<int>(blockIdx.x) / static_cast<int>(c.num_groups);
    group = static_cast<int>(blockIdx.x) % static_cast<int>(c.num_groups);
    first_head = static_cast<int>(blockIdx.z) * kHeads;
    heads = min(kHeads, p.heads - first_head);
    num_keys = c.places.counts[sequence] > 0 ? c.places.lengths[sequence] + 1 : 0;
    const int first = static_cast<int>(p.k.first_key(num_keys));
    begin = min(first + static_cast<int>(blockIdx.y) * p.block_keys, num_keys);
    end = min(begin + p.block_keys, num_keys);
    stride = c.cache_stride();
    const T* const of_group = static_cast<const T*>(p.k.qkv.data) + sequence * c.qkv_stride() +
                              group * (p.heads + 2) * kHeadDim;
    query = of_group + first_head * kHeadDim;
    fresh = of_group + p.heads * kHeadDim;
    const std::int64_t slot = c.places.slots[sequence];
    pages = c.places.pages != nullptr ? c.places.pages + slot * c.places.pages_per_slot : nullptr;
    keys = static_cast<T*>(p.k.cache.data) + (pages != nullptr ? 0 : slot * c.capacity * stride) +
           group * 2 * kHeadDim;
    out = static_cast<T*>(p.k.out.data) +
          ((std::int64_t{sequence} * c.num_groups + group) * p.heads + first_head) * kHeadDim;
  }

  __device__ __forceinline__ T* key(int number) const {
    const std::int64_t token =
        pages != nullptr ? (std::int64_t{pages[number >> kCachePageLog2]} << kCachePageLog2) +
                               (number & (kCachePage - 1))
                         : number;
    return keys + token * stride;
  }
};

// Asks for the keys and values from `first` on. What is not in the cache is zero; the new key comes
// later.
template <int kHeadDim, int kWarps, class T>
__device__ __forceinline__ void ask(const Place<kHeadDim, T>& at, int first,
                                    Shared<kHeadDim, kWarps, T>& shared, int stage) {
  using Tile = SharedTile<kHeadDim>;
  constexpr int kUnits = Tile::kUnits, kRowsAtOnce = kWarps * kWarpSize / kUnits;
  if (first < at.end) {
    const int unit = static_cast<int>(threadIdx.x) % kUnits;
    const std::uint32_t keys = attention_cuda::shared_address(shared.tiles[stage][0]);
    const std::uint32_t values = attention_cuda::shared_address(shared.tiles[stage][1]);
#pragma unroll
    for (int i = 0; i < kWarps * kWarpKeys; i += kRowsAtOnce) {
      const int row = i + static_cast<int>(threadIdx.x) / kUnits, number = first + row;
      const bool there = number < at.end && number + 1 < at.num_keys;
      const T* const from = there ? at.key(number) + unit * 8 : at.keys;
      attention_cuda::copy_async(keys + Tile::offset(row, unit), from, there);
      attention_cuda::copy_async(values + Tile::offset(row, unit), from + (there ? kHeadDim : 0),
                                 there);
    }
  }
  attention_cuda::commit_copies();
}

// Cosine and sine of the sequence's angles, as exact as those of Rotary.
template <int kHeadDim, int kWarps, class T>
__device__ __forceinline__ void set_angles(const Turn& turn, int sequence,
                                           Shared<kHeadDim, kWarps, T>& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < turn.pairs; i += kWarps * kWarpSize) {
    const double turns =
        double(turn.positions[sequence]) * turn.frequencies[i] * 0.15915494309189535;
    const auto angle = static_cast<float>((turns - rint(turns)) * 6.283185307179586);
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    shared.angles[i] = {cosine * turn.magnitude, sine * turn.magnitude};
  }
}

// Channels c .. c + 7 of a head, turned.
template <class T>
__device__ __forceinline__ Pack<T, 8> turned(const Turn& turn, const T* head, int c,
                                             const float2* angles) {
  Pack<T, 8> x = load_pack<8>(head + c);
  if (c >= 2 * turn.pairs) {
    return x;
  }
  if (turn.interleaved) {
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const float2 angle = angles[(c + j) / 2];
      const float a = to_float(x[j]), b = to_float(x[j + 1]);
      x[j] = from_float<T>(a * angle.x - b * angle.y);
      x[j + 1] = from_float<T>(b * angle.x + a * angle.y);
    }
    return x;
  }
  const bool first = c < turn.pairs;
  const int pair = first ? c : c - turn.pairs;
  const Pack<T, 8> other = load_pack<8>(head + (first ? c + turn.pairs : pair));
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 angle = angles[pair + j];
    const float side = to_float(other[j]) * angle.y;
    x[j] = from_float<T>(to_float(x[j]) * angle.x + (first ? -side : side));
  }
  return x;
}

// Zeros for queries that there are not.
template <int kHeadDim, int kWarps, class T>
__device__ __forceinline__ void clear_rest(const Place<kHeadDim, T>& at,
                                           Shared<kHeadDim, kWarps, T>& shared) {
  using Tile = SharedTile<kHeadDim>;
  auto* const tile = reinterpret_cast<unsigned char*>(shared.query);
  for (int i = at.heads * Tile::kUnits + static_cast<int>(threadIdx.x); i < kHeads * Tile::kUnits;
       i += kWarps * kWarpSize) {
    *reinterpret_cast<uint4*>(tile + Tile::offset(i / Tile::kUnits, i % Tile::kUnits)) = {};
  }
}

// The queries, and the new key and its value.
template <int kHeadDim, int kWarps, class T>
__device__ __forceinline__ void load_new(const Turn& turn, const Place<kHeadDim, T>& at,
                                         Shared<kHeadDim, kWarps, T>& shared) {
  using Tile = SharedTile<kHeadDim>;
  auto* const tile = reinterpret_cast<unsigned char*>(shared.query);
  const int count = at.heads + 2;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < count * Tile::kUnits; i += kWarps * kWarpSize) {
    const int head = i / Tile::kUnits, unit = i % Tile::kUnits;
    if (head + 1 == count) {
      store_pack(&shared.fresh[1][unit * 8], load_pack<8>(at.fresh + kHeadDim + unit * 8));
    } else if (head == at.heads) {
      store_pack(&shared.fresh[0][unit * 8], turned(turn, at.fresh, unit * 8, shared.angles));
    } else {
      store_pack(reinterpret_cast<T*>(tile + Tile::offset(head, unit)),
                 turned(turn, at.query + head * kHeadDim, unit * 8, shared.angles));
    }
  }
}

// The new key and its value in their row of a tile.
template <int kHeadDim, int kWarps, class T>
__device__ __forceinline__ void put_new(int row, Shared<kHeadDim, kWarps, T>& shared, int stage) {
  using Tile = SharedTile<kHeadDim>;
  const int i = static_cast<int>(threadIdx.x);
  if (i < 2 * Tile::kUnits) {
    const int which = i / Tile::kUnits, unit = i % Tile::kUnits;
    *reinterpret_cast<uint4*>(shared.tiles[stage][which] + Tile::offset(row, unit)) =
        *reinterpret_cast<const uint4*>(&shared.fresh[which][unit * 8]);
  }
}

// What a warp has of the heads g and g + 8 of its lane's quad (mma_sm80.cuh).
template <int kHeadDim, int kWarps, class T>
struct WarpSums {
  std::uint32_t query[kHeadDim / 16][4];
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {}, out[kHeadDim / 8][4] = {};

  __device__ __forceinline__ void load_query(const Shared<kHeadDim, kWarps, T>& shared) {
    const SharedTile<kHeadDim> tile{attention_cuda::shared_address(shared.query)};
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) {
      tile.load_a(query[k], 0, 16 * k);
    }
  }

  // Adds the first `count` of this warp's keys of a tile, at least one.
  __device__ __forceinline__ void add(const Shared<kHeadDim, kWarps, T>& shared, int stage,
                                      int count, float scale) {
    using namespace attention_cuda;
    const int row = static_cast<int>(threadIdx.x) / kWarpSize * kWarpKeys;
    const SharedTile<kHeadDim> keys{shared_address(shared.tiles[stage][0])};
    const SharedTile<kHeadDim> values{shared_address(shared.tiles[stage][1])};
    float scores[2][4] = {}, others[2][4] = {};  // of every other step: sums that do not wait
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) {
      std::uint32_t b[4];
      keys.load_b(b, row, 16 * k);
      multiply_add<T>(k % 2 == 0 ? scores[0] : others[0], query[k], b[0], b[1]);
      multiply_add<T>(k % 2 == 0 ? scores[1] : others[1], query[k], b[2], b[3]);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      scores[0][e] += others[0][e];
      scores[1][e] += others[1][e];
    }
    mask(scores, count, scale);
    const std::uint32_t weights[4] = {
        pack_pair<T>(scores[0][0], scores[0][1]), pack_pair<T>(scores[0][2], scores[0][3]),
        pack_pair<T>(scores[1][0], scores[1][1]), pack_pair<T>(scores[1][2], scores[1][3])};
#pragma unroll
    for (int c = 0; c < kHeadDim / 8; c += 2) {
      std::uint32_t b[4];
      values.load_b_transposed(b, row, 8 * c);
      multiply_add<T>(out[c], weights, b[0], b[1]);
      multiply_add<T>(out[c + 1], weights, b[2], b[3]);
    }
  }

 private:
  // Scores become weights beside the maximum so far, for which the sums are made smaller.
  __device__ __forceinline__ void mask(float (&scores)[2][4], int count, float scale) {
    using namespace attention_cuda;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    float larger[2] = {maximum[0], maximum[1]};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[i][e] = 8 * i + lane % 4 * 2 + e % 2 < count ? scores[i][e] * scale : -INFINITY;
        larger[e / 2] = fmaxf(larger[e / 2], scores[i][e]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      larger[half] = quad_max(larger[half]);
      const float factor = exp2_approximate(maximum[half] - larger[half]);
      maximum[half] = larger[half];
      total[half] *= factor;
#pragma unroll
      for (int c = 0; c < kHeadDim / 8; ++c) {
        out[c][2 * half] *= factor;
        out[c][2 * half + 1] *= factor;
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[i][e] = exp2_approximate(scores[i][e] - larger[e / 2]);
        total[e / 2] += scores[i][e];
      }
    }
  }

 public:
  __device__ __forceinline__ void put(Shared<kHeadDim, kWarps, T>& shared) const {
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    float* const to = shared.sums(warp);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int head = lane / 4 + 8 * half;
      const float all = attention_cuda::quad_sum(total[half]);
      if (lane % 4 == 0) {
        shared.weights[warp][head] = {maximum[half], all};
      }
#pragma unroll
      for (int c = 0; c < kHeadDim / 8; ++c) {
        *reinterpret_cast<float2*>(to + head * Shared<kHeadDim, kWarps, T>::kPitch + 8 * c +
                                   lane % 4 * 2) = {out[c][2 * half], out[c][2 * half + 1]};
      }
    }
  }
};

// Four channels of what the warps of all blocks of the cluster found, in order of the keys.
template <int kHeadDim, int kWarps, class T>
__device__ __forceinline__ Pack<T, 4> put_together(const Shared<kHeadDim, kWarps, T>& shared,
                                                   int head, int channel) {
  using namespace attention_cuda;
  float sums[4] = {}, maximum = -INFINITY, total = 0;
#pragma unroll 2
  for (unsigned rank = 0; rank < gridDim.y; ++rank) {
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      const float4 part = load_of_block(
          reinterpret_cast<const float4*>(shared.sums(warp) +
                                          head * Shared<kHeadDim, kWarps, T>::kPitch + channel),
          rank);
      const float2 weight = load_of_block(&shared.weights[warp][head], rank);
      const float larger = fmaxf(maximum, weight.x);
      const float factor = larger == -INFINITY ? 0.0f : exp2_approximate(maximum - larger);
      const float other = larger == -INFINITY ? 0.0f : exp2_approximate(weight.x - larger);
      maximum = larger;
      total = total * factor + weight.y * other;
      sums[0] = sums[0] * factor + part.x * other;
      sums[1] = sums[1] * factor + part.y * other;
      sums[2] = sums[2] * factor + part.z * other;
      sums[3] = sums[3] * factor + part.w * other;
    }
  }
  const float inverse = total > 0 ? 1.0f / total : 0.0f;
  Pack<T, 4> out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[i] = from_float<T>(sums[i] * inverse);
  }
  return out;
}

template <int kHeadDim, int kWarps, class T>
__global__ void __launch_bounds__(kWarps* kWarpSize, 8 / kWarps)
    attend(const __grid_constant__ Problem p) {
  using S = Shared<kHeadDim, kWarps, T>;
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<S*>(memory);
  let_next_kernel_start();
  const Place<kHeadDim, T> at(p);
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    ask(at, at.begin + stage * S::kTileKeys, shared, stage);
  }
  set_angles(p.turn, at.sequence, shared);
  clear_rest(at, shared);
  __syncthreads();
  wait_for_kernels_before();
  load_new(p.turn, at, shared);
  __syncthreads();
  WarpSums<kHeadDim, kWarps, T> sums;
  sums.load_query(shared);
  int stage = 0;
#pragma unroll 1
  for (int first = at.begin; first < at.end; first += S::kTileKeys) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(kStages - 1) : "memory");
    __syncthreads();
    if (const int row = at.num_keys - 1 - first; row < min(S::kTileKeys, at.end - first)) {
      put_new(row, shared, stage);
      __syncthreads();
    }
    if (const int count = at.end - first - warp * kWarpKeys; count > 0) {
      sums.add(shared, stage, count, p.k.scale * kLog2E);
    }
    __syncthreads();  // the tile was read
    ask(at, first + kStages * S::kTileKeys, shared, stage);
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  if (at.end == at.num_keys && at.begin < at.end && blockIdx.z == 0) {
    for (int c = static_cast<int>(threadIdx.x); c < 2 * kHeadDim; c += S::kThreads) {
      at.key(at.num_keys - 1)[c] = shared.fresh[c / kHeadDim][c % kHeadDim];
    }
  }
  sums.put(shared);
  meet_cluster();
  const int all = at.heads * kHeadDim / 4;
  for (int i = static_cast<int>(blockIdx.y) * S::kThreads + static_cast<int>(threadIdx.x); i < all;
       i += static_cast<int>(gridDim.y) * S::kThreads) {
    store_pack(at.out + i * 4, put_together(shared, i * 4 / kHeadDim, i * 4 % kHeadDim));
  }
  meet_cluster();
}

}  // namespace bloomery::group_attention
