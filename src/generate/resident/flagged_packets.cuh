// Flagged packets: 16 bits of a result and 16 bits of the phase that wrote it, in one word (as in
// NCCL's LL protocol). Whoever reads one knows that it is there, without a barrier and without a
// second trip to memory.
#pragma once

#include "generate/resident/shared.cuh"

namespace bloomery::resident {

inline constexpr int kFour = 4;  // words that are read at a time

// Sixteen bits of a result below the last sixteen of its phase's number. A place is written again
// long before those repeat.
template <class T>
__device__ __forceinline__ void send(std::uint32_t* to, T value, std::uint32_t phase) {
  std::uint16_t bits;
  memcpy(&bits, &value, sizeof bits);
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;\n" ::"l"(to), "r"(phase << 16 | bits)
               : "memory");
}

__device__ __forceinline__ uint4 load_words(const std::uint32_t* from) {
  uint4 words;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
  return words;
}

__device__ __forceinline__ bool are_of(std::uint32_t phase, const uint4& words) {
  const std::uint32_t wanted = phase << 16;
  return ((words.x ^ wanted) | (words.y ^ wanted) | (words.z ^ wanted) | (words.w ^ wanted)) <
         1u << 16;
}

// Four results, of words that are there.
__device__ __forceinline__ uint2 results_of(const uint4& words) {
  return {__byte_perm(words.x, words.y, 0x5410), __byte_perm(words.z, words.w, 0x5410)};
}

// Results from memory or as words of a phase, four at a time.
template <class T>
struct Results {
  const T* memory;
  const std::uint32_t* words;
  std::uint32_t phase;

  // Those at first, first + step, ..., as far as they are below `end`: all are on their way at
  // once. `first` is below it.
  template <int kCount>
  __device__ __forceinline__ void load(int first, int step, int end, uint2 (&to)[kCount]) const {
    if (words == nullptr) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (i == 0 || first + i * step < end) {  // past the L1 cache: other blocks wrote it
          to[i] = __ldcg(reinterpret_cast<const uint2*>(memory + first + i * step));
        }
      }
      return;
    }
    uint4 found[kCount];
    bool there;
    do {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (i == 0 || first + i * step < end) {
          found[i] = load_words(words + first + i * step);
        }
      }
      there = true;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        there &= (i > 0 && first + i * step >= end) || are_of(phase, found[i]);
      }
    } while (!there);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      to[i] = results_of(found[i]);
    }
  }
};

// All results, by all computing threads.
template <class T>
__device__ __forceinline__ void receive_all(const Results<T>& results, int count, T* to) {
  constexpr int kAtOnce = 4, kStep = kComputing * kFour;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x) * kFour; first < count; first += kAtOnce * kStep) {
    uint2 four[kAtOnce];
    results.load(first, kStep, count, four);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i == 0 || first + i * kStep < count) {
        *reinterpret_cast<uint2*>(to + first + i * kStep) = four[i];
      }
    }
  }
}

// Sixteen bytes that are read and written whole.
__device__ __forceinline__ void send_whole(uint4* to, const uint4& words) {
  const std::uint64_t low = std::uint64_t{words.y} << 32 | words.x;
  const std::uint64_t high = std::uint64_t{words.w} << 32 | words.z;
  asm volatile(
      "{\n.reg .b128 all;\nmov.b128 all, {%1, %2};\n"
      "st.relaxed.gpu.global.b128 [%0], all;\n}\n" ::"l"(to),
      "l"(low), "l"(high)
      : "memory");
}
__device__ __forceinline__ uint4 load_whole(const uint4* from) {
  std::uint64_t low, high;
  asm volatile(
      "{\n.reg .b128 all;\nld.relaxed.gpu.global.b128 all, [%2];\n"
      "mov.b128 {%0, %1}, all;\n}\n"
      : "=l"(low), "=l"(high)
      : "l"(from)
      : "memory");
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
          static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
}

}  // namespace bloomery::resident
