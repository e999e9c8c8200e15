// A block of the GPU has one warp that copies tiles of weights into a ring of shared memory, ahead
// of everything, and eight that compute. Of every product a block has a run of rows of b, which
// lie one after the other in memory; a tile has up to 16 of them and some of their columns.
#include "device/cuda_check.h"
#include "device/shared_barrier.cuh"
#include "ops/resident/attention.cuh"
#include "ops/resident/product.cuh"
#include "ops/resident/resident.h"

namespace bloomery::resident {
namespace {

constexpr int kThreads = kComputing + kLanes;

struct Arguments {
  const Phase* phases;
  int num_phases, rows;
  std::uint32_t* arrivals;  // and the number of the last phase
  Places places;
  int input_bytes, stream_bytes, slots, slot_bytes;
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
  std::int64_t row_bytes;
  int rows, bytes, pitch;  // bytes of a row
};

// The tiles of this block, product after product: run after run, group after group of rows.
class Tiles {
 public:
  __device__ Tiles(const Arguments& a)
      : first_(a.phases), next_(a.phases), end_(a.phases + a.num_phases) {}

  // False when there are no more.
  __device__ bool take(Tile& tile) {
    while (group_ == num_groups_) {
      if (next_ == end_) {
        return false;
      }
      start(*next_++);
    }
    const int run = group_ / per_run_, row = group_ % per_run_ * tile_rows_;
    tile.rows = min(tile_rows_, count_ - row);
    tile.from = b_ + (run * half_ + row) * row_bytes_ + at_;
    tile.row_bytes = row_bytes_;
    tile.bytes = static_cast<int>(min(std::int64_t{chunk_bytes_}, row_bytes_ - at_));
    tile.pitch = pitch_;
    at_ += chunk_bytes_;
    if (at_ >= row_bytes_) {
      at_ = 0;
      ++group_;
    }
    return true;
  }

 private:
  __device__ void start(const Phase& phase) {
    if (!phase.is_product) {
      return;
    }
    const Product& p = phase.product;
    if (threadIdx.x % kLanes == 0) {
      fetch_vectors(p, static_cast<int>(next_ - first_));
    }
    const Share share(p);
    const Groups groups(share.count);
    group_ = 0;
    num_groups_ = share.runs * groups.count;
    per_run_ = groups.count;
    tile_rows_ = groups.rows;
    count_ = share.count;
    half_ = share.half;
    row_bytes_ = p.row_bytes;
    chunk_bytes_ = p.row_bytes / p.k * p.chunk;
    pitch_ = tile_pitch(p.format, p.chunk);
    b_ = static_cast<const char*>(p.b) + share.begin * row_bytes_;
  }

  const Phase *first_, *next_, *end_;
  const char* b_ = nullptr;
  std::int64_t row_bytes_ = 0, at_ = 0, half_ = 0;
  int group_ = 0, num_groups_ = 0, per_run_ = 1, tile_rows_ = 0, count_ = 0;
  int chunk_bytes_ = 0, pitch_ = 0;
};

__device__ __forceinline__ void copy_row(std::uint32_t to, const char* from, int bytes,
                                         SharedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier.address)
      : "memory");
}

// A lane of this warp copies a row of each tile.
__device__ void copy_tiles(const Arguments& a, const Ring& ring) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  Tiles tiles(a);
  Tile tile;
  for (Turn turn(ring); tiles.take(tile); turn.next()) {
    if (turn.round > 0) {
      ring.empty(turn.slot).wait(turn.round - 1);
    }
    if (lane == 0) {
      ring.full(turn.slot).arrive_expecting(tile.rows * tile.bytes);
    }
    __syncwarp();
    if (lane < tile.rows) {
      copy_row(ring.address(turn.slot) + static_cast<std::uint32_t>(lane * tile.pitch),
               tile.from + lane * tile.row_bytes, tile.bytes, ring.full(turn.slot));
    }
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

template <int kRows, class T>
__device__ __forceinline__ void compute(const Arguments& a, const Ring& ring, const Room<T>& room) {
  constexpr int kWords = sizeof(Phase) / sizeof(uint4);
  static_assert(kWords <= kComputing);
  const auto copy_phase = [&](int i) {
    if (i < a.num_phases && threadIdx.x < kWords) {
      copy_async(reinterpret_cast<uint4*>(&room.shared.phases[i % 2]) + threadIdx.x,
                 reinterpret_cast<const uint4*>(a.phases + i) + threadIdx.x);
    }
  };
  Turn turn(ring);
  const std::uint32_t last = *(a.arrivals + 1);
  std::uint32_t met = 0;  // how often blocks had to arrive
  copy_phase(0);
  load_places(a.places, a.rows, room.shared);
  wait_for_copies();
  sync_computing();
  for (int i = 0; i < a.num_phases; ++i) {
    const Phase& phase = room.shared.phases[i % 2];
    copy_phase(i + 1);  // is there when the blocks are
    const Place place{last + 1 + static_cast<std::uint32_t>(i), a.arrivals, met * gridDim.x,
                      phase.meets};
    const bool meets_next = phase.meets_next;
    if (phase.is_product) {
      multiply<kRows, T>(phase, a.rows, ring, turn, room, place);
    } else {
      attend<T>(phase.attention, a.places, a.rows, room, place);
    }
    sync_computing();
    if (meets_next) {
      arrive(a.arrivals);
      ++met;
    }
  }
  leave(a.arrivals, (met + 1) * gridDim.x, last + static_cast<std::uint32_t>(a.num_phases));
}

template <int kRows, class T>
__global__ void __launch_bounds__(kThreads, 1) run_phases(const __grid_constant__ Arguments a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared*>(memory);
  const Room<T> room{shared, memory + kSharedBytes, memory + kSharedBytes + a.input_bytes};
  const Ring ring(room.kept + a.stream_bytes, shared.barriers, a.slots, a.slot_bytes);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < a.slots; ++slot) {
      ring.full(slot).initialise(1);
      ring.empty(slot).initialise(kWarps);
    }
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kComputing) {
    compute<kRows, T>(a, ring, room);
  } else {
    copy_tiles(a, ring);
  }
#endif
}

template <int kRows, class T>
void launch_kernel(Stream& stream, const Launch& l) {
  const auto rounded = [](int bytes) { return (bytes + 127) / 128 * 128; };
  const int slot_bytes = rounded(l.tile_bytes);
  const int input_bytes =
      rounded(std::max<int>(l.input_bytes, static_cast<int>(sizeof(AttentionShared<T>))));
  const int stream_bytes = rounded(l.stream_bytes);
  int room = 0;
  check_cuda(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                    stream.device().options().index),
             "cudaDeviceGetAttribute");
  const int slots =
      std::min((room - kSharedBytes - input_bytes - stream_bytes) / slot_bytes, kMaxSlots);
  check(slots >= 2, "resident kernel: no room for two tiles of ", slot_bytes, " bytes");
  const int bytes = kSharedBytes + input_bytes + stream_bytes + slots * slot_bytes;
  const auto kernel = run_phases<kRows, T>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute");
  const Arguments a{.phases = l.phases,
                    .num_phases = l.num_phases,
                    .rows = l.rows,
                    .arrivals = l.arrivals,
                    .places = l.places,
                    .input_bytes = input_bytes,
                    .stream_bytes = stream_bytes,
                    .slots = slots,
                    .slot_bytes = slot_bytes};
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(num_blocks(stream.device())));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = cuda_stream(stream);
  config.attrs = &together;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, a), "cudaLaunchKernelEx");
}

template <class T>
void launch_rows(Stream& stream, const Launch& l) {
  if (l.rows == 1) {
    launch_kernel<1, T>(stream, l);
  } else if (l.rows == 2) {
    launch_kernel<2, T>(stream, l);
  } else {
    launch_kernel<kMaxRows, T>(stream, l);
  }
}

}  // namespace

void launch(Stream& stream, const Launch& l) {
  if (l.dtype == DType::bf16) {
    launch_rows<__nv_bfloat16>(stream, l);
  } else {
    launch_rows<__half>(stream, l);
  }
}

int num_blocks(const Device& device) {
  const int index = device.options().index;
  int major = 0, processors = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, index),
             "cudaDeviceGetAttribute");
  return major >= 9 ? processors : 0;
}

bool is_capturing(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(cuda_stream(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void upload(Stream& stream, void* to, const void* from, std::size_t bytes) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cuda_stream(stream)),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(cuda_stream(stream)), "cudaStreamSynchronize");
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

}  // namespace bloomery::resident
