// Barriers of the threads of a block and of the copy engine, for sm_90 and newer.
#pragma once

#include <cstdint>

namespace bloomery {

// A barrier in shared memory, by its address; it completes a phase when `arrivals` threads have
// arrived and the announced bytes have come.
struct SharedBarrier {
  std::uint32_t address;

  __device__ __forceinline__ void initialise(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address), "r"(arrivals)
                 : "memory");
  }
  __device__ __forceinline__ void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address) : "memory");
  }
  __device__ __forceinline__ void arrive_expecting(int bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address),
                 "r"(bytes)
                 : "memory");
  }
  // Announces bytes of the current phase, in which this thread has yet to arrive.
  __device__ __forceinline__ void expect(int bytes) const {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;\n" ::"r"(address),
                 "r"(bytes)
                 : "memory");
  }
  // Until phase number `phase` (0, 1, ...) is complete; it must be the current or the previous one.
  __device__ __forceinline__ void wait(int phase) const {
    asm volatile(
        "{\n.reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra ready;\nbra again;\nready:\n}\n" ::"r"(address),
        "r"(phase & 1)
        : "memory");
  }
};
// Makes initialised barriers visible to the copy engine; before a __syncthreads().
__device__ __forceinline__ void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}
// A barrier of some warps; number 0 is that of __syncthreads().
__device__ __forceinline__ void sync_threads(int number, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(number), "r"(threads) : "memory");
}

}  // namespace bloomery
