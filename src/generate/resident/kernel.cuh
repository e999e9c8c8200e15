// A block of the GPU has warps that copy tiles of weights into a ring of shared memory, ahead of
// everything, and eight that compute. Of every product a block has a run of rows of b, which lie
// one after the other in memory; a tile has up to 16 of them and some of their columns.
//
// What of the H200 shapes it (measured). Time is the length of the path from a result to the next
// one, some five cycles an instruction of a warp: nothing is divided, converted or looked up there
// that can be before. A bulk copy takes some 50 cycles: one copying warp with 16 rows of a tile was
// slower than memory. Asking weights into L2 ahead of the ring halves the bandwidth (4.3 to 2.6
// TB/s), also where it is done only while the ring is full. Shared memory takes nearly all of L1,
// so that a spilled register is a trip to L2: eight computing warps, not sixteen. Code runs as fast
// as it is issued up to 128 KB that are gone through again and again, three times slower beyond. A
// tile of codes takes 1,450 cycles, so that int8 and fp8 wait for arithmetic, not for memory.
//
// Tried without gain: 128 or 256 keys in a block; one kernel for all formats of codes (spills).
#pragma once

#include "device/shared_barrier.cuh"
#include "generate/resident/attention.cuh"
#include "generate/resident/product.cuh"

namespace bloomery::resident {
namespace {

// A bulk copy is one instruction of a warp, whatever its lanes do: several warps share the rows.
constexpr int kCopying = 4;
constexpr int kThreads = kComputing + kCopying * kLanes;

struct Arguments {
  const Phase* phases;
  int num_phases, rows;
  std::uint32_t* arrivals;  // and the number of the last phase
  Places places;
  int input_bytes, stream_bytes, num_sums, ring_bytes;
};

__device__ __forceinline__ void fetch_to_l2(const void* from, int bytes) {
  if (from != nullptr && bytes >= 16) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;\n" ::"l"(from), "r"(bytes / 16 * 16)
                 : "memory");
  }
}

// Asks the small vectors of a product into the L2 cache, one block for all.
__device__ void fetch_vectors(const Product& p, int number) {
  if (static_cast<unsigned>(number) % gridDim.x == blockIdx.x) {
    fetch_to_l2(p.norm.gain, 2 * p.k);
    fetch_to_l2(p.norm.bias, 2 * p.k);
    if (reinterpret_cast<std::uintptr_t>(p.bias) % 16 == 0) {
      fetch_to_l2(p.bias, 2 * p.n);
    }
  }
}

// Rows of b, of some columns: where they are in memory, and where in shared memory.
struct Tile {
  const char* from;
  int rows, bytes, pitch;  // bytes of a row
  std::int64_t row_bytes;
};

// The tiles of this block, product after product: run after run, group after group of rows.
class Tiles {
 public:
  __device__ Tiles(const Arguments& a)
      : first_(a.phases), next_(a.phases), end_(a.phases + a.num_phases), share_(Product{}) {}

  // False when there are no more.
  __device__ bool take(Tile& tile) {
    while (rows_ == 0) {
      if (next_ == end_) {
        return false;
      }
      start(*next_++);
    }
    tile.rows = rows_;
    tile.from = row_ + at_;
    tile.row_bytes = row_bytes_;
    tile.bytes = min(chunk_bytes_, row_bytes_ - at_);
    tile.pitch = pitch_;
    at_ += chunk_bytes_;
    if (at_ >= row_bytes_) {
      at_ = 0;
      number_ += rows_;
      to_group();
    }
    return true;
  }

 private:
  __device__ void to_group() {
    rows_ = share_.rows_from(number_);
    row_ = b_ + std::int64_t{share_.row(number_)} * row_bytes_;
  }
  __device__ void start(const Phase& phase) {
    if (!phase.is_product) {
      return;
    }
    const Product& p = phase.product;
    if (threadIdx.x == kComputing) {
      fetch_vectors(p, static_cast<int>(next_ - first_));
      fetch_to_l2(next_ != end_ ? next_ : nullptr, sizeof(Phase));
    }
    share_ = Share(p);
    number_ = 0;
    row_bytes_ = p.row_bytes;
    chunk_bytes_ = p.format == QuantizedFormat::none ? 2 * p.chunk : p.chunk;
    pitch_ = tile_pitch(p.format);
    b_ = static_cast<const char*>(p.b);
    to_group();
  }

  const Phase *first_, *next_, *end_;
  Share share_;
  const char *b_ = nullptr, *row_ = nullptr;
  int number_ = 0, rows_ = 0, row_bytes_ = 0, chunk_bytes_ = 0, at_ = 0, pitch_ = 0;
};

__device__ __forceinline__ void copy_row(std::uint32_t to, const char* from, int bytes,
                                         SharedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier.address)
      : "memory");
}

// Each of these warps copies some rows of each tile, when those that had its place were read.
// Places are counted on and on, as if memory had no end: lane number % 32 has that of a tile in the
// ring.
__device__ void copy_tiles(const Arguments& a, const Ring& ring) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warp = static_cast<int>(threadIdx.x) / kLanes - kWarps, row = warp + lane * kCopying;
  Tiles tiles(a);
  Tile tile;
  Turn turn;
  unsigned oldest = 0;  // tile that may not have been read yet
  int begin = 0, begins = 0;
  while (tiles.take(tile)) {
    const int bytes = tile.rows * tile.pitch;
    begin += turn.place(ring, bytes);
    while (oldest < turn.number &&
           (turn.number - oldest == kMaxSlots ||
            begin + bytes - __shfl_sync(0xFFFFFFFFu, begins, static_cast<int>(oldest % kLanes)) >
                ring.bytes())) {
      ring.empty(oldest % kMaxSlots).wait(static_cast<int>(oldest / kMaxSlots));
      ++oldest;
    }
    begins = lane == static_cast<int>(turn.number % kLanes) ? begin : begins;
    const SharedBarrier full = ring.full(turn.slot());
    if (lane == 0) {  // with or without rows: none of the warps comes behind by a round
      full.arrive_expecting((tile.rows - warp + kCopying - 1) / kCopying * tile.bytes);
    }
    if (row < tile.rows) {
      copy_row(ring.address(turn.offset) + static_cast<std::uint32_t>(row * tile.pitch),
               tile.from + row * tile.row_bytes, tile.bytes, full);
    }
    begin += bytes;
    turn.next(bytes);
  }
}

__device__ void arrive(std::uint32_t* arrivals) {
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;\n" ::"l"(arrivals) : "memory");
  }
}

// Nobody waits for this any more: the last one leaves zero, and the number for the next launch.
__device__ void leave(std::uint32_t* arrivals, std::uint32_t total, std::uint32_t phase) {
  if (threadIdx.x == 0 && atomicAdd(arrivals, 1) + 1 == total) {
    arrivals[0] = 0;
    arrivals[1] = phase;
  }
}

template <int kRows, QuantizedFormat kFormat, class T>
__device__ __forceinline__ void compute(const Arguments& a, const Ring& ring, const Room<T>& room) {
  constexpr int kPacks = sizeof(Phase) / sizeof(uint4);
  static_assert(kPacks <= kComputing);
  const auto ask_phase = [&](int i) {
    if (i < a.num_phases && threadIdx.x < kPacks) {
      copy_async(reinterpret_cast<uint4*>(&room.shared.phases[i % kPhases]) + threadIdx.x,
                 reinterpret_cast<const uint4*>(a.phases + i) + threadIdx.x);
    }
  };
  Turn turn;
  const std::uint32_t last = *(a.arrivals + 1);
  std::uint32_t met = 0;  // how often blocks had to arrive
  ask_phase(0);
  load_places(a.places, a.rows, room.shared);
  wait_for_copies();
  sync_computing();
  if (const int unit = static_cast<int>(blockIdx.x);
      threadIdx.x == 0 && a.places.cache.slots != nullptr && unit < num_units(a.places, a.rows)) {
    set_unit(a.places, unit, room.shared);
  }
  sync_computing();
#pragma unroll 1
  for (int i = 0; i < a.num_phases; ++i) {
    const Phase& phase = room.shared.phases[i % kPhases];
    ask_phase(i + 1);  // every phase waits for it before its first barrier
    const Place place{last + 1 + static_cast<std::uint32_t>(i), a.arrivals, met * gridDim.x,
                      phase.meets};
    const bool meets_next = phase.meets_next;
    if (phase.is_product) {
      multiply<kRows, kFormat>(phase.product, a.rows, ring, turn, room, place);
    } else {
      attend<T>(phase.attention, a.places, a.rows, room, place);
    }
    if (meets_next) {
      sync_computing();
      arrive(a.arrivals);
      ++met;
    }
  }
  leave(a.arrivals, (met + 1) * gridDim.x, last + static_cast<std::uint32_t>(a.num_phases));
}

// Weights that are codes have that format.
template <int kRows, QuantizedFormat kFormat, class T>
__global__ void __launch_bounds__(kThreads, 1) run_phases(const __grid_constant__ Arguments a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared*>(memory);
  unsigned char* const kept = memory + kSharedBytes + a.input_bytes;
  auto* const sums = reinterpret_cast<float*>(kept + a.stream_bytes);
  const Room<T> room{shared, memory + kSharedBytes, kept, sums, a.num_sums};
  const Ring ring(kept + a.stream_bytes + a.num_sums * kWarps * static_cast<int>(sizeof(float)),
                  shared.barriers, a.ring_bytes);
  if (threadIdx.x == 0) {
    for (unsigned slot = 0; slot < kMaxSlots; ++slot) {
      ring.full(slot).initialise(kCopying);
      ring.empty(slot).initialise(kWarps);
    }
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kComputing) {
    compute<kRows, kFormat>(a, ring, room);
  } else {
    copy_tiles(a, ring);
  }
#endif
}

}  // namespace
}  // namespace bloomery::resident
