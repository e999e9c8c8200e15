// The shared memory of a block, and the ring of weight tiles in it.
#pragma once

#include "device/shared_barrier.cuh"
#include "device/warp.cuh"
#include "ops/resident/phases.h"

namespace bloomery::resident {

inline constexpr int kComputing = kWarps * kLanes;  // threads
inline constexpr int kMaxSlots = 16;
inline constexpr int kKeptBias = 512;
inline constexpr int kMaxPairs = kMaxHeadDim / 2;

template <class T>
using EightOf = Pack<T, kPackElements>;

// Of attention.
template <class T>
struct AttentionShared {
  float partials[kWarps][kMaxHeadDim + 2];
  alignas(16) float query[kMaxHeadDim];
  alignas(16) T fresh[2][kMaxHeadDim];  // the new key and its value
};

struct Shared {
  Phase phases[2];
  std::uint64_t barriers[2 * kMaxSlots];
  float2 reductions[kWarps];
  float2 scale_and_bias[kKeptBias];  // of the first rows of this block
  float sums[kWarps][kKeptSums];     // of rows of b, by warp and row of the input
  float2 angles[kMaxRows][kMaxPairs];
  int slots[kMaxRows], counts[kMaxRows];  // of keys, the new one among them
};
inline constexpr int kSharedBytes = (sizeof(Shared) + 127) / 128 * 128;

// What the computing threads have: the common part, what is either the input of a product or the
// scratch of attention, and the rows that norms keep.
template <class T>
struct Room {
  Shared& shared;
  unsigned char *memory, *kept;

  __device__ T* input() const { return reinterpret_cast<T*>(memory); }
  __device__ T* stream() const { return reinterpret_cast<T*>(kept); }
  __device__ AttentionShared<T>& attention() const {
    return *reinterpret_cast<AttentionShared<T>*>(memory);
  }
};

// Of the computing threads.
__device__ __forceinline__ void sync_computing() { sync_threads(1, kComputing); }

// Sixteen bytes into shared memory, which this thread does not wait for; they are there for all
// after wait_for_copies() and a barrier.
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

// Where a phase stands: its number and, where blocks meet before it, how many of them must have
// arrived.
struct Place {
  std::uint32_t number;
  const std::uint32_t* arrivals;
  std::uint32_t wanted;
  bool meets;

  // Until what the phases before wrote is there, unless it comes as words, and what this block
  // copies.
  __device__ __forceinline__ void wait() const {
    if (meets && threadIdx.x == 0) {
      std::uint32_t seen = 0;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n"
                     : "=r"(seen)
                     : "l"(arrivals)
                     : "memory");
      } while (seen < wanted);
    }
    wait_for_copies();
    sync_computing();
  }
};

// The rows of b that this block has: some from `begin` on and, of a gated product, as many of the
// second half. They are numbered one after the other.
struct Share {
  int begin, count, runs, half;
  __device__ explicit Share(const Product& p) {
    const int block = static_cast<int>(blockIdx.x);
    begin = block * p.block_rows + min(block, p.extra);
    count = p.block_rows + (block < p.extra ? 1 : 0);
    runs = p.gated != nullptr ? 2 : 1;
    half = p.n / 2;
  }
  __device__ int all() const { return runs * count; }
  __device__ int row(int number) const {
    return number < count ? begin + number : begin + number - count + half;
  }
};

// How so many rows of b are divided into tiles.
struct Groups {
  int count, rows, all;
  __device__ explicit Groups(int share_rows) : all(share_rows) {
    count = (share_rows + kTileRows - 1) / kTileRows;
    rows = count > 0 ? (share_rows + count - 1) / count : 0;
  }
  __device__ int rows_of(int group) const { return min(rows, all - group * rows); }
};

class Ring {
 public:
  __device__ Ring(unsigned char* memory, std::uint64_t* barriers, int slots, int slot_bytes)
      : slots_(slots),
        slot_bytes_(slot_bytes),
        memory_(memory),
        barriers_(static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers))) {}

  __device__ int slots() const { return slots_; }
  __device__ const unsigned char* tile(int slot) const { return memory_ + slot * slot_bytes_; }
  __device__ std::uint32_t address(int slot) const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(tile(slot)));
  }
  __device__ SharedBarrier full(int slot) const {
    return {barriers_ + static_cast<std::uint32_t>(slot) * 8};
  }
  __device__ SharedBarrier empty(int slot) const {
    return {barriers_ + static_cast<std::uint32_t>(kMaxSlots + slot) * 8};
  }

 private:
  int slots_, slot_bytes_;
  unsigned char* memory_;
  std::uint32_t barriers_;
};

// Whose turn it is in the ring.
struct Turn {
  __device__ explicit Turn(const Ring& ring) : slots(ring.slots()) {}
  __device__ void next() {
    if (++slot == slots) {
      slot = 0;
      ++round;
    }
  }
  int slots, slot = 0, round = 0;
};

// Two numbers of a word. (Arrays of 16-bit numbers would take a register for each.)
template <class T>
__device__ __forceinline__ float2 unpacked(std::uint32_t word);
template <>
__device__ __forceinline__ float2 unpacked<__nv_bfloat16>(std::uint32_t word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xFFFF0000u)};
}
template <>
__device__ __forceinline__ float2 unpacked<__half>(std::uint32_t word) {
  __half2 pair;
  memcpy(&pair, &word, sizeof pair);
  return __half22float2(pair);
}

// Past the L1 cache, for what other blocks of this kernel wrote.
template <class T>
__device__ __forceinline__ EightOf<T> load_shared_by_blocks(const T* from) {
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(from));
  EightOf<T> pack;
  memcpy(&pack, &words, sizeof pack);
  return pack;
}

}  // namespace bloomery::resident
