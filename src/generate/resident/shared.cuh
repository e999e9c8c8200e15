// The shared memory of a block, and the ring of weight tiles in it.
#pragma once

#include "device/shared_barrier.cuh"
#include "device/warp.cuh"
#include "generate/resident/phases.h"

namespace bloomery::resident {

inline constexpr int kComputing = kWarps * kLanes;  // threads
inline constexpr unsigned kMaxSlots = 32;
// Descriptions: of this phase, the next one, and one that other warps may still read.
inline constexpr int kPhases = 3;
inline constexpr int kMaxPairs = kMaxHeadDim / 2;

template <class T>
using EightOf = Pack<T, kPackElements>;

// Of attention.
template <class T>
struct AttentionShared {
  float partials[kWarps][kMaxHeadDim + 2];
  alignas(16) float query[kMaxHeadDim];
  alignas(16) T arrived[2][kMaxHeadDim];  // query and key, as they came
  alignas(16) T fresh[2][kMaxHeadDim];    // the new key and its value
};

// One head of one row, over the keys [begin, end) of a split.
struct Unit {
  int row, head, split, splits;  // the head among those of all rows
  int group, head_of_group, count, begin, end;
  std::int64_t keys;          // where its first key is in the cache
  const std::int32_t* pages;  // of the row's slot; null: it has none
};

struct Shared {
  Phase phases[kPhases];
  std::uint64_t barriers[2 * kMaxSlots];
  float2 reductions[kWarps];
  float origins[kMaxRows];  // the first numbers of the rows that norms keep
  float2 angles[kMaxRows][kMaxPairs];
  int slots[kMaxRows], counts[kMaxRows];  // of keys, the new one among them
  Unit unit;                              // of this block
};
inline constexpr int kSharedBytes = (sizeof(Shared) + 127) / 128 * 128;

// What the computing threads have: the common part, what is either the input of a product or the
// scratch of attention, the rows that norms keep, and sums of products, by row of b, row of the
// input and warp.
template <class T>
struct Room {
  Shared& shared;
  unsigned char *memory, *kept;
  float* sums;
  int num_sums;  // of each warp

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

  // Until what the phases before wrote is there, unless it comes as words.
  __device__ __forceinline__ void wait() const {
    if (meets) {
      if (threadIdx.x == 0) {
        std::uint32_t seen = 0;
        do {
          asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n"
                       : "=r"(seen)
                       : "l"(arrivals)
                       : "memory");
        } while (seen < wanted);
      }
      sync_computing();
    }
  }
};

// The rows of b that this block has: some from `begin` on and, of a gated product, as many of the
// second half. They are numbered one after the other, and divided into tiles.
struct Share {
  int begin, count, all, half, tile_rows;
  __device__ explicit Share(const Product& p) : tile_rows(p.tile_rows) {
    const int block = static_cast<int>(blockIdx.x);
    begin = block * p.block_rows + min(block, p.extra);
    count = p.block_rows + (block < p.extra ? 1 : 0);
    all = p.gated != nullptr ? 2 * count : count;
    half = p.n / 2;
  }
  __device__ int row(int number) const {
    return number < count ? begin + number : begin + number - count + half;
  }
  // Rows of the tile that begins with row `number`; 0: there is none.
  __device__ int rows_from(int number) const {
    return min(tile_rows, (number < count ? count : all) - number);
  }
};

// Tiles lie one after the other in the ring, each in one piece, and come round to its beginning.
// Every one has a barrier that says that it is there, and one that it was read.
class Ring {
 public:
  __device__ Ring(unsigned char* memory, std::uint64_t* barriers, int bytes)
      : bytes_(bytes),
        memory_(memory),
        barriers_(static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers))) {}

  __device__ int bytes() const { return bytes_; }
  __device__ const unsigned char* at(int offset) const { return memory_ + offset; }
  __device__ std::uint32_t address(int offset) const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory_ + offset));
  }
  __device__ SharedBarrier full(unsigned slot) const { return {barriers_ + slot * 8}; }
  __device__ SharedBarrier empty(unsigned slot) const {
    return {barriers_ + (kMaxSlots + slot) * 8};
  }

 private:
  int bytes_;
  unsigned char* memory_;
  std::uint32_t barriers_;
};

// Whose turn it is in the ring: the number of a tile, and where it is.
struct Turn {
  unsigned number = 0;
  int offset = 0;

  __device__ __forceinline__ unsigned slot() const { return number % kMaxSlots; }
  __device__ __forceinline__ int round() const { return static_cast<int>(number / kMaxSlots); }
  // How many bytes before the tile stay unused; it must follow for a tile of `bytes`.
  __device__ __forceinline__ int place(const Ring& ring, int bytes) {
    const int unused = offset + bytes > ring.bytes() ? ring.bytes() - offset : 0;
    offset = unused > 0 ? 0 : offset;
    return unused;
  }
  __device__ __forceinline__ void next(int bytes) {
    offset += bytes;
    ++number;
  }
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

// Four numbers of 16 bits.
template <class T>
__device__ __forceinline__ float4 unpacked(uint2 words) {
  const float2 low = unpacked<T>(words.x), high = unpacked<T>(words.y);
  return {low.x, low.y, high.x, high.y};
}

}  // namespace bloomery::resident
