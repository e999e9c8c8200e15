// A block multiplies a tile of rows of b (columns of d) with all rows of a by warpgroup products, b
// as their operand of 64 rows, so that a few rows of a waste nothing. One warp has the copy engine
// fill a ring with panels of b and a; the others take from it. A cluster of blocks divides k, and
// each of them adds up some of the results, what all of them found, in the order of k. So sums have
// a fixed order.
//
// A tile is two halves, which lie next to each other or, of a product with a gate, n / 2 apart.
// Where it is lower than its warpgroups, they multiply whatever lies behind it, and nobody looks at
// the sums.
//
// Two blocks fit on a processor, and a lasting b is asked for before the kernel that makes a ends:
// while a step goes from one product to the next, memory does not rest.
//
// What is lost on an H200: a small product waits three times (its input, some 1 us, the sums of its
// cluster, 1.5, the end of the kernel, 1). With many rows every block reads a's panels again, and
// takes what L2 gives (5 TB/s): 128 rows are faster in cuBLASLt. Tried: three blocks on a processor
// with rings of 74 KB (slower: the ring is what is on its way).
#pragma once

#include "device/cluster_sm90.cuh"
#include "device/launch_cuda.cuh"
#include "ops/activation/activated.cuh"
#include "ops/attention/pipeline_sm90.cuh"
#include "ops/matmul/warpgroup_columns_sm90.cuh"

namespace bloomery::some_rows {

using attention_cuda::PanelTile;

constexpr int kStep = 64;       // of k
constexpr int kMostSplits = 8;  // of k: blocks of a cluster

struct Problem {
  CUtensorMap b, a;  // boxes of half_rows, and of kRows, and of kStep columns
  const void* bias;
  void* d;  // [rows, n], or, gated, [rows, n / 2]
  int rows, n, steps;
  int half_rows, stages;  // of b in half a tile; of the ring
  bool gated, fp32, b_lasts;
  Activation activation;  // of the gate, where there is one
};

// Of a block with so many warpgroups that compute, each with up to 64 rows of b; two blocks share a
// processor.
template <int kRows_, int kGroups>
struct Layout {
  static constexpr int kRows = kRows_, kTileRows = 64 * kGroups;
  static constexpr int kComputing = kGroups * attention_cuda::kWarpgroup;
  static constexpr int kThreads = kComputing + kWarpSize, kWarpgroups = kGroups;
  using Weights = PanelTile<kTileRows, kStep>;
  using Input = PanelTile<kRows, kStep>;
  static constexpr int kPitch = kTileRows + 4;  // of sums: the lanes of a quad in banks apart
  static constexpr int kBytes = 112 * 1024, kMostStages = 16;
  static_assert(kRows * kPitch * 4 < kBytes - 1024);

  static constexpr int stage_bytes(int half_rows) {
    return 2 * half_rows * kStep * 2 + Input::kBytes;
  }
  // What a block can have: tiles are aligned, and products read whole warpgroups' rows.
  static constexpr int stages(int half_rows) {
    const int beyond = Weights::kBytes - stage_bytes(half_rows);
    const int count = (kBytes - 1024 - (beyond > 0 ? beyond : 0)) / stage_bytes(half_rows);
    return count < kMostStages ? count : kMostStages;
  }
};

template <class L>
struct Ring {
  std::uint32_t tiles, barriers;
  int stages, half_bytes;

  __device__ int stage_bytes() const { return 2 * half_bytes + L::Input::kBytes; }
  __device__ typename L::Weights weights(int stage) const {
    return {tiles + static_cast<std::uint32_t>(stage * stage_bytes())};
  }
  __device__ typename L::Input input(int stage) const {
    return {weights(stage).base + static_cast<std::uint32_t>(2 * half_bytes)};
  }
  __device__ SharedBarrier full(int stage) const {
    return {barriers + static_cast<std::uint32_t>(stage * 8)};
  }
  __device__ SharedBarrier empty(int stage) const {
    return {barriers + static_cast<std::uint32_t>((L::kMostStages + stage) * 8)};
  }
};

__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap& map, int column,
                                         int row, SharedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3,%4}], [%2];\n" ::"r"(to),
      "l"(&map), "r"(barrier.address), "r"(column), "r"(row)
      : "memory");
}

// Steps of k [begin, end) of this block.
struct Share {
  int begin, end;
  __device__ explicit Share(const Problem& p) {
    const auto of = [&](unsigned split) {
      return static_cast<int>(split * static_cast<unsigned>(p.steps) / gridDim.x);
    };
    begin = of(blockIdx.x);
    end = of(blockIdx.x + 1);
  }
};

// One thread.
template <class L>
__device__ __forceinline__ void copy_tiles(const Problem& p, const Ring<L>& ring) {
  const Share share(p);
  const int tile = static_cast<int>(blockIdx.y);
  const int low = tile * p.half_rows * (p.gated ? 1 : 2);
  const int high = low + (p.gated ? p.n / 2 : p.half_rows);
  const auto copy_weights = [&](int stage, int step) {
    ring.full(stage).arrive_expecting(ring.stage_bytes());
    const std::uint32_t to = ring.weights(stage).base;
    copy_box(to, p.b, step * kStep, low, ring.full(stage));
    copy_box(to + static_cast<std::uint32_t>(ring.half_bytes), p.b, step * kStep, high,
             ring.full(stage));
  };
  for (const CUtensorMap* const map : {&p.b, &p.a}) {
    asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
  }
  if (!p.b_lasts) {
    wait_for_kernels_before();
  }
  const int ahead = min(ring.stages, share.end - share.begin);
  for (int i = 0; i < ahead; ++i) {
    copy_weights(i, share.begin + i);
  }
  wait_for_kernels_before();
  for (int i = 0; i < ahead; ++i) {
    copy_box(ring.input(i).base, p.a, (share.begin + i) * kStep, 0, ring.full(i));
  }
  int stage = 0, round = 0;
  for (int step = share.begin + ahead; step < share.end; ++step) {
    ring.empty(stage).wait(round);
    copy_weights(stage, step);
    copy_box(ring.input(stage).base, p.a, step * kStep, 0, ring.full(stage));
    stage = stage + 1 == ring.stages ? 0 : stage + 1;
    round += stage == 0 ? 1 : 0;
  }
}

template <class T, class L>
__device__ __forceinline__ void multiply(const Problem& p, const Ring<L>& ring,
                                         float (&sums)[L::kRows / 2]) {
  using namespace attention_cuda;
  const Share share(p);
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  const bool releases = threadIdx.x % kWarpgroup == 0;
  int stage = 0, round = 0, before = -1;
  for (int step = share.begin; step < share.end; ++step) {
    ring.full(stage).wait(round);
    fence_products();
    pin(sums);
#pragma unroll
    for (int k = 0; k < kStep; k += 16) {
      WarpgroupProduct<T, L::kRows>::template run<false, false>(
          sums, ring.weights(stage).along_rows(warpgroup * 64, k),
          ring.input(stage).along_rows(0, k), step > share.begin || k > 0);
    }
    commit_products();
    wait_products<1>();
    if (before >= 0 && releases) {
      ring.empty(before).arrive();
    }
    before = stage;
    stage = stage + 1 == ring.stages ? 0 : stage + 1;
    round += stage == 0 ? 1 : 0;
  }
  wait_products();
  pin(sums);
}

constexpr int kUnit = 4;  // results that a thread finishes at a time

// The results in a row of sums at this address, of all blocks of the cluster.
__device__ __forceinline__ void add_blocks(const float* place, float (&x)[kUnit]) {
#pragma unroll
  for (int i = 0; i < kUnit; ++i) {
    x[i] = 0;
  }
#pragma unroll 8
  for (unsigned rank = 0; rank < gridDim.x; ++rank) {
    const float4 part = load_of_block(reinterpret_cast<const float4*>(place), rank);
    x[0] += part.x;
    x[1] += part.y;
    x[2] += part.z;
    x[3] += part.w;
  }
}

template <class T>
__device__ __forceinline__ void add_bias(const Problem& p, int column, float (&x)[kUnit]) {
  if (p.bias != nullptr) {
    const auto bias = load_pack<kUnit>(static_cast<const T*>(p.bias) + column);
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {
      x[i] += to_float(bias[i]);
    }
  }
}

// Four results from the sums at that address; the first is in that row and column of d.
template <class T, class L>
__device__ __forceinline__ void finish(const Problem& p, const float* place, int row, int column) {
  float x[kUnit];
  add_blocks(place, x);
  add_bias<T>(p, column, x);
  const int width = p.gated ? p.n / 2 : p.n;
  const std::int64_t at = std::int64_t{row} * width + column;
  Pack<T, kUnit> rounded;
  if (p.gated) {
    float up[kUnit];
    add_blocks(place + p.half_rows, up);
    add_bias<T>(p, column + width, up);
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {  // rounded as if they had been to memory
      rounded[i] = from_float<T>(activated(p.activation, to_float(from_float<T>(x[i]))) *
                                 to_float(from_float<T>(up[i])));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {
      x[i] = activated(p.activation, x[i]);
      rounded[i] = from_float<T>(x[i]);
    }
  }
  if (p.fp32) {
    auto* const to = reinterpret_cast<float4*>(static_cast<float*>(p.d) + at);
    to[0] = {x[0], x[1], x[2], x[3]};
  } else {
    store_pack(static_cast<T*>(p.d) + at, rounded);
  }
}

template <class L>
__device__ __forceinline__ void put_sums(const float (&sums)[L::kRows / 2], float* to) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int b_row = static_cast<int>(threadIdx.x) / kWarpSize * 16 + lane / 4;
#pragma unroll
  for (int piece = 0; piece < L::kRows / 8; ++piece) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = piece * 8 + lane % 4 * 2 + e % 2;
      to[row * L::kPitch + b_row + e / 2 * 8] = sums[piece * 4 + e];
    }
  }
}

template <class L, class T>
__global__ void __launch_bounds__(L::kThreads, 2) product(const __grid_constant__ Problem p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char memory[];
  __shared__ std::uint64_t barriers[2 * L::kMostStages];
  const std::uint32_t start = attention_cuda::shared_address(memory);
  const std::uint32_t base = (start + 1023) & ~1023u;
  auto* const kept = reinterpret_cast<float*>(memory + (base - start));
  const Ring<L> ring{base, attention_cuda::shared_address(barriers), p.stages,
                     p.half_rows * kStep * 2};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < p.stages; ++stage) {
      ring.full(stage).initialise(1);
      ring.empty(stage).initialise(L::kWarpgroups);
    }
    fence_barriers();
  }
  __syncthreads();
  let_next_kernel_start();
  const int tile_columns = p.half_rows * (p.gated ? 1 : 2);
  const int first_column = static_cast<int>(blockIdx.y) * tile_columns;
  const int width = p.gated ? p.n / 2 : p.n;
  if (const int column = first_column + static_cast<int>(threadIdx.x) * kUnit;
      p.bias != nullptr && column < min(first_column + tile_columns, width)) {
    fetch_ahead(static_cast<const T*>(p.bias) + column);
  }
  if (threadIdx.x >= L::kComputing) {
    if (threadIdx.x == L::kComputing) {
      copy_tiles(p, ring);
    }
    __syncwarp();
  } else {
    float sums[L::kRows / 2];
    multiply<T>(p, ring, sums);
    sync_threads(1, L::kComputing);  // all tiles were read
    put_sums<L>(sums, kept);
  }
  wait_for_kernels_before();
  meet_cluster();
  const int units_of_row = min(tile_columns, width - first_column) / kUnit;
  const int units = p.rows * units_of_row;
  const auto share = [&](unsigned rank) {
    return static_cast<int>(rank * static_cast<unsigned>(units) / gridDim.x);
  };
  for (int unit = share(blockIdx.x) + static_cast<int>(threadIdx.x); unit < share(blockIdx.x + 1);
       unit += L::kThreads) {
    const int row = unit / units_of_row, column = unit % units_of_row * kUnit;
    finish<T, L>(p, kept + row * L::kPitch + column, row, first_column + column);
  }
  meet_cluster();
#endif
}

}  // namespace bloomery::some_rows
