// Grouped products on the tensor cores of sm_90a. A block takes tiles of 128 x 256 results one
// after another: one thread keeps the copy engine busy, two warpgroups multiply, 64 rows each.
// Groups are made of whole tiles of rows, so that nothing has to be masked but columns.
#pragma once

#include "ops/attention/pipeline_sm90.cuh"
#include "ops/moe/grouped_epilogue.cuh"
#include "ops/moe/grouped_linear.h"

namespace bloomery::moe_cuda {

using attention_cuda::commit_products;
using attention_cuda::fence_products;
using attention_cuda::keep_registers;
using attention_cuda::kWarpgroup;
using attention_cuda::pack_pair;
using attention_cuda::PanelTile;
using attention_cuda::pin;
using attention_cuda::shared_address;
using attention_cuda::take_registers;
using attention_cuda::wait_products;
using attention_cuda::WarpgroupProduct;

inline constexpr int kRows = 128, kColumns = 256, kDepth = 64, kStages = 4, kConsumers = 2;
inline constexpr int kThreads = kWarpgroup * (kConsumers + 1);
inline constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
inline constexpr int kTileBytesA = kRows * kDepth * 2, kTileBytesB = kColumns * kDepth * 2;
inline constexpr int kStageBytes = kTileBytesA + kTileBytesB;
inline constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 2 * 8 * kStages;

// How an operand lies: its K along the rows of the matrix in memory, or down them.
enum class Operand { along_rows, down_rows };
template <Operand kOperand, int kExtent>
using OperandTile = std::conditional_t<kOperand == Operand::along_rows, PanelTile<kExtent, kDepth>,
                                       PanelTile<kDepth, kExtent>>;

// Starts copying a tile whose first element is (row, column) of the mapped matrix; zeros beyond it.
template <class Tile>
__device__ __forceinline__ void copy_tile(Tile tile, const CUtensorMap& map, int row, int column,
                                          SharedBarrier barrier) {
#pragma unroll
  for (int panel = 0; panel < Tile::kPanels; ++panel) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3,%4}], [%2];\n" ::"r"(tile.base + panel * Tile::kPanelBytes),
        "l"(&map), "r"(barrier.address), "r"(column + panel * Tile::kPanel), "r"(row)
        : "memory");
  }
}

// The ring of stages that the producer fills and the consumers empty, over all tiles of a block.
template <Operand kA, Operand kB>
struct Ring {
  std::uint32_t shared;

  __device__ __forceinline__ OperandTile<kA, kRows> a(int stage) const {
    return {shared + stage * kStageBytes};
  }
  __device__ __forceinline__ OperandTile<kB, kColumns> b(int stage) const {
    return {shared + stage * kStageBytes + kTileBytesA};
  }
  __device__ __forceinline__ SharedBarrier full(int stage) const {
    return {shared + kStages * kStageBytes + 8 * stage};
  }
  __device__ __forceinline__ SharedBarrier empty(int stage) const {
    return {shared + kStages * kStageBytes + 8 * (kStages + stage)};
  }
  __device__ __forceinline__ void initialise() const {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < kStages; ++stage) {
        full(stage).initialise(1);
        empty(stage).initialise(4 * kConsumers);
      }
      fence_barriers();
    }
    __syncthreads();
  }
};

// Where the tiles of one result come from.
struct TileSource {
  int a_row, a_column, b_row, b_column;  // of step 0
  int steps;
};

template <Operand kA, Operand kB>
__device__ __forceinline__ void produce(const Ring<kA, kB>& ring, int& count,
                                        const TileSource& from, const CUtensorMap& a,
                                        const CUtensorMap& b) {
  for (int step = 0; step < from.steps; ++step, ++count) {
    const int stage = count % kStages, round = count / kStages;
    if (round > 0) {
      ring.empty(stage).wait(round - 1);
    }
    ring.full(stage).arrive_expecting(kStageBytes);
    const int k = step * kDepth;
    constexpr bool kAlongA = kA == Operand::along_rows, kAlongB = kB == Operand::along_rows;
    copy_tile(ring.a(stage), a, from.a_row + (kAlongA ? 0 : k), from.a_column + (kAlongA ? k : 0),
              ring.full(stage));
    copy_tile(ring.b(stage), b, from.b_row + (kAlongB ? 0 : k), from.b_column + (kAlongB ? k : 0),
              ring.full(stage));
  }
}

using Sums = float[2][64];  // two halves of 128 columns

template <class T, Operand kA, Operand kB>
__device__ __forceinline__ void multiply(const Ring<kA, kB>& ring, int& count, int steps,
                                         int consumer, Sums& sums) {
  if (steps == 0) {
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      sums[0][i] = sums[1][i] = 0;
    }
    return;
  }
  const bool first_lane = threadIdx.x % 32 == 0;
  for (int step = 0; step < steps; ++step, ++count) {
    const int stage = count % kStages;
    ring.full(stage).wait(count / kStages);
    pin(sums[0]);
    pin(sums[1]);
    fence_products();
    const auto a = ring.a(stage);
    const auto b = ring.b(stage);
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      std::uint64_t left;
      if constexpr (kA == Operand::along_rows) {
        left = a.along_rows(64 * consumer, k);
      } else {
        left = a.down_rows(k, 64 * consumer);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint64_t right;
        if constexpr (kB == Operand::along_rows) {
          right = b.along_rows(128 * half, k);
        } else {
          right = b.down_rows(k, 128 * half);
        }
        WarpgroupProduct<T, 128>::template run<kA == Operand::down_rows, kB == Operand::down_rows>(
            sums[half], left, right, step > 0 || k > 0);
      }
    }
    commit_products();
    if (step > 0) {
      wait_products<1>();
      if (first_lane) {
        ring.empty((count - 1) % kStages).arrive();
      }
    }
  }
  wait_products<0>();
  pin(sums[0]);
  pin(sums[1]);
  if (first_lane) {
    ring.empty((count - 1) % kStages).arrive();
  }
}

// Of four lanes: word i of lane q becomes word q of lane i.
__device__ __forceinline__ void transpose_quad(std::uint32_t (&w)[4]) {
  const unsigned lane = threadIdx.x;
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int low = bit == 1 ? 2 * pair : pair, high = low + bit;
      const bool upper = (lane & static_cast<unsigned>(bit)) != 0;
      const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFFu, upper ? w[low] : w[high], bit);
      (upper ? w[low] : w[high]) = got;
    }
  }
}

template <class T>
__device__ __forceinline__ float2 load_pair(const T* from) {
  return {to_float(from[0]), to_float(from[1])};
}

// Rows row and row + 8 of the thread, columns first + 128 half + 8 piece + 2 (lane % 4) and the
// next; whole pieces of eight columns are inside or outside of the matrix.
template <class T, Activation kActivation, Activation kDerivative>
struct Epilogue {
  const ProductOnDevice<T>& p;
  const int group, row, first_column, quad_lane;

  __device__ __forceinline__ void store(T* to, std::int64_t at_row, int column,
                                        std::uint32_t (&words)[4]) const {
    transpose_quad(words);
    const std::int64_t own = column + 8 * quad_lane;  // this lane's piece
    if (own < p.n) {
      *reinterpret_cast<uint4*>(to + at_row * p.n + own) =
          uint4{words[0], words[1], words[2], words[3]};
    }
  }

  __device__ __forceinline__ void run(const Sums& sums) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int pieces = 0; pieces < 16; pieces += 4) {
        const int column = first_column + 128 * half + 8 * pieces;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          finish(sums[half], pieces, r, column);
        }
      }
    }
  }

  __device__ __forceinline__ void finish(const float (&sums)[64], int pieces, int r,
                                         int column) const {
    const std::int64_t at_row = row + 8 * r;
    std::uint32_t before[4], result[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t c = column + 8 * i + 2 * quad_lane;
      const bool inside = c < p.n;
      float low = sums[4 * (pieces + i) + 2 * r], high = sums[4 * (pieces + i) + 2 * r + 1];
      if (p.bias != nullptr && inside) {
        const float2 bias = load_pair(p.bias + group * p.n + c);
        low += bias.x;
        high += bias.y;
      }
      before[i] = pack_pair<T>(low, high);
      low = activate<kActivation, kAccuracyFor<T>>(low);
      high = activate<kActivation, kAccuracyFor<T>>(high);
      if (kDerivative != Activation::none && inside) {
        const float2 at = load_pair(p.derivative_at + at_row * p.n + c);
        low *= activation_derivative<kDerivative, kAccuracyFor<T>>(at.x);
        high *= activation_derivative<kDerivative, kAccuracyFor<T>>(at.y);
      }
      result[i] = pack_pair<T>(low, high);
    }
    if (kActivation != Activation::none && p.before != nullptr) {
      store(p.before, at_row, column, before);
    }
    store(p.d, at_row, column, result);
  }
};

template <class T>
struct ProductArguments {
  ProductOnDevice<T> p;
  CUtensorMap a, b;
};

template <class T, Operand kB, Activation kActivation, Activation kDerivative>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_product_90(const __grid_constant__ ProductArguments<T> args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char shared[];
  const ProductOnDevice<T>& p = args.p;
  const Ring<Operand::along_rows, kB> ring{(shared_address(shared) + 1023) / 1024 * 1024};
  ring.initialise();
  const int column_tiles = static_cast<int>((p.n + kColumns - 1) / kColumns);
  const int tiles = static_cast<int>(p.rows / kRows) * column_tiles;
  const int steps = static_cast<int>((p.k + kDepth - 1) / kDepth);
  const std::int32_t* const groups = p.tiles;
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  int count = 0;
  if (warpgroup == 0) {
    keep_registers<kProducerRegisters>();
    for (int tile = blockIdx.x; threadIdx.x == 0 && tile < tiles; tile += gridDim.x) {
      const int group = groups[tile / column_tiles], column = tile % column_tiles * kColumns;
      if (group < 0) {
        break;  // and so are all that follow
      }
      const bool along = kB == Operand::along_rows;
      const int b_row = group * static_cast<int>(along ? p.n : p.k) + (along ? column : 0);
      produce(ring, count, {tile / column_tiles * kRows, 0, b_row, along ? 0 : column, steps},
              args.a, args.b);
    }
  } else {
    take_registers<kConsumerRegisters>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x % kWarpgroup / 32;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const int group = groups[tile / column_tiles];
      if (group < 0) {
        break;
      }
      Sums sums;
      multiply<T>(ring, count, steps, warpgroup - 1, sums);
      const int row = tile / column_tiles * kRows + 64 * (warpgroup - 1) + 16 * warp + lane / 4;
      Epilogue<T, kActivation, kDerivative>{p, group, row, tile % column_tiles * kColumns, lane % 4}
          .run(sums);
    }
  }
#endif
}

template <class T>
struct GradientArguments {
  GradientOnDevice<T> p;
  CUtensorMap a, b;
};

template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_weight_gradient_90(const __grid_constant__ GradientArguments<T> args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char shared[];
  const GradientOnDevice<T>& p = args.p;
  const Ring<Operand::down_rows, Operand::down_rows> ring{(shared_address(shared) + 1023) / 1024 *
                                                          1024};
  ring.initialise();
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n);
  const int row_tiles = (m + kRows - 1) / kRows, column_tiles = (n + kColumns - 1) / kColumns;
  const int per_group = row_tiles * column_tiles;
  const int tiles = per_group * p.groups;
  const std::int32_t* const offsets = p.offsets;
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  int count = 0;
  const auto steps_of = [&](int group) { return (offsets[group + 1] - offsets[group]) / kDepth; };
  const auto row_of = [&](int tile) { return tile % per_group / column_tiles * kRows; };
  const auto column_of = [&](int tile) { return tile % per_group % column_tiles * kColumns; };
  if (warpgroup == 0) {
    keep_registers<kProducerRegisters>();
    for (int tile = blockIdx.x; threadIdx.x == 0 && tile < tiles; tile += gridDim.x) {
      const int group = tile / per_group, begin = offsets[group];
      produce(ring, count, {begin, row_of(tile), begin, column_of(tile), steps_of(group)}, args.a,
              args.b);
    }
  } else {
    take_registers<kConsumerRegisters>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x % kWarpgroup / 32;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const int group = tile / per_group;
      Sums sums;
      multiply<T>(ring, count, steps_of(group), warpgroup - 1, sums);
      float* const d = p.d + std::int64_t{group} * m * n;
      const int row = row_of(tile) + 64 * (warpgroup - 1) + 16 * warp + lane / 4;
#pragma unroll
      for (int i = 0; i < 64; ++i) {
        const int at_row = row + 8 * (i % 2);
        const int column = column_of(tile) + 128 * (i / 32) + 8 * (i / 2 % 16) + 2 * (lane % 4);
        if (at_row < m && column < n) {
          const float* const from = &sums[i / 32][4 * (i / 2 % 16) + 2 * (i % 2)];
          float2* const to = reinterpret_cast<float2*>(d + std::int64_t{at_row} * n + column);
          const float2 earlier = p.add ? *to : float2{0, 0};
          *to = float2{earlier.x + from[0], earlier.y + from[1]};
        }
      }
    }
  }
#endif
}

}  // namespace bloomery::moe_cuda
