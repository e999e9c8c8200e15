// What feeds the warpgroup products of sm_90a: tiles in shared memory that the tensor copy engine
// (TMA) fills, barriers that count its bytes, and the division of registers between warpgroups.
#pragma once

#include <cuda.h>

#include "device/shared_barrier.cuh"
#include "ops/attention/mma_sm80.cuh"
#include "ops/attention/wgmma_sm90.cuh"

namespace bloomery::attention_cuda {

inline constexpr int kWarpgroup = 128;  // threads

// A row-major tile of 16-bit elements as panels of kPanel columns one after the other, each of
// kRows rows of 64 or 128 bytes whose 16-byte units are permuted ("swizzled") as the copy engine
// and the tensor cores do it. The tile starts at a multiple of 1024 bytes.
template <int kRows_, int kColumns_>
struct PanelTile {
  static constexpr int kRows = kRows_, kColumns = kColumns_;
  static constexpr int kPanel = kColumns % 64 == 0 ? 64 : 32, kPanels = kColumns / kPanel;
  static constexpr int kRowBytes = kPanel * 2, kPanelBytes = kRows * kRowBytes;
  static constexpr int kBytes = kPanels * kPanelBytes;
  static_assert(kColumns % 32 == 0 && kRows % 8 == 0);

  std::uint32_t base;  // shared address

  // Byte offset of the word that holds (row, column); column is even.
  __device__ static __forceinline__ std::uint32_t offset(int row, int column) {
    const int unit = column % kPanel / 8;
    const int place = kPanel == 64 ? row & 7 : (row >> 1) & 3;
    return static_cast<std::uint32_t>(column / kPanel * kPanelBytes + row * kRowBytes +
                                      (unit ^ place) * 16 + column % 8 * 2);
  }

  // Descriptor bits: address, distance of panels (only read where N or M runs along rows and spans
  // panels), distance of groups of eight rows, and the permutation.
  __device__ __forceinline__ std::uint64_t descriptor(std::uint32_t address) const {
    constexpr std::uint64_t kPermutation = kPanel == 64 ? 1 : 2;
    return std::uint64_t{(address & 0x3FFFFu) >> 4} |
           std::uint64_t{(kPanelBytes >> 4) & 0x3FFF} << 16 |
           std::uint64_t{(8 * kRowBytes) >> 4} << 32 | kPermutation << 62;
  }
  // K runs along rows: rows from `row`, which is a multiple of eight, and K from `k`.
  __device__ __forceinline__ std::uint64_t along_rows(int row, int k) const {
    return descriptor(base + static_cast<std::uint32_t>(k / kPanel * kPanelBytes + row * kRowBytes +
                                                        k % kPanel * 2));
  }
  // K runs down the rows, from row `k`; columns from `column`, which is a multiple of kPanel.
  __device__ __forceinline__ std::uint64_t down_rows(int k, int column) const {
    return descriptor(base +
                      static_cast<std::uint32_t>(column / kPanel * kPanelBytes + k * kRowBytes));
  }
};

// Makes this thread's writes of shared memory visible to the tensor cores and the copy engine.
__device__ __forceinline__ void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
template <int kRegisters>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

// One head of a HeadView: the coordinates of a tensor map made by map_heads().
struct HeadCoordinates {
  int head_in_group, group, sequence;
};

// Starts copying rows [first, first + kRows) of a head into the tile, with zeros beyond its length
// and its head_dim; the barrier gets kBytes. One thread calls it.
template <int kRows, int kColumns>
__device__ __forceinline__ void copy_tile(PanelTile<kRows, kColumns> tile, const CUtensorMap& map,
                                          HeadCoordinates at, int first, SharedBarrier barrier) {
  using Tile = PanelTile<kRows, kColumns>;
#pragma unroll
  for (int panel = 0; panel < Tile::kPanels; ++panel) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3,%4,%5,%6,%7}], [%2];\n" ::"r"(tile.base + panel * Tile::kPanelBytes),
        "l"(&map), "r"(barrier.address), "r"(panel * Tile::kPanel), "r"(first),
        "r"(at.head_in_group), "r"(at.group), "r"(at.sequence)
        : "memory");
  }
}

}  // namespace bloomery::attention_cuda
