// Results that travel between blocks as words, each of which says which phase wrote it: whoever
// reads one knows that it is there, without a barrier and without a second trip to memory.
#pragma once

#include "ops/resident/shared.cuh"

namespace bloomery::resident {

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

// Eight results, of words that are there.
template <class T>
__device__ __forceinline__ EightOf<T> results_of(const uint4& low, const uint4& high) {
  const uint4 words = {__byte_perm(low.x, low.y, 0x5410), __byte_perm(low.z, low.w, 0x5410),
                       __byte_perm(high.x, high.y, 0x5410), __byte_perm(high.z, high.w, 0x5410)};
  EightOf<T> pack;
  memcpy(&pack, &words, sizeof pack);
  return pack;
}

// Eight results, when they are there.
template <class T>
__device__ __forceinline__ EightOf<T> receive_pack(const std::uint32_t* from, std::uint32_t phase) {
  uint4 low, high;
  do {
    low = load_words(from);
    high = load_words(from + 4);
  } while (!are_of(phase, low) || !are_of(phase, high));
  return results_of<T>(low, high);
}

// All results, by all computing threads: of each several packs are on their way at a time.
template <class T>
__device__ __forceinline__ void receive_all(const std::uint32_t* from, int count,
                                            std::uint32_t phase, T* to) {
  constexpr int kAtOnce = 2, kStep = kComputing * kPackElements;
  for (int first = static_cast<int>(threadIdx.x) * kPackElements; first < count;
       first += kAtOnce * kStep) {
    uint4 low[kAtOnce], high[kAtOnce];
    bool there;
    do {
      there = true;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i * kStep < count) {
          low[i] = load_words(from + first + i * kStep);
          high[i] = load_words(from + first + i * kStep + 4);
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        there &= first + i * kStep >= count || (are_of(phase, low[i]) && are_of(phase, high[i]));
      }
    } while (!there);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kStep < count) {
        store_pack(to + first + i * kStep, results_of<T>(low[i], high[i]));
      }
    }
  }
}

__device__ __forceinline__ std::uint32_t load_word(const std::uint32_t* from) {
  std::uint32_t word;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];\n" : "=r"(word) : "l"(from) : "memory");
  return word;
}

__device__ __forceinline__ bool is_of(std::uint32_t phase, std::uint32_t word) {
  return word >> 16 == (phase & 0xFFFFu);
}

template <class T>
__device__ __forceinline__ T result_of(std::uint32_t word) {
  const auto bits = static_cast<std::uint16_t>(word);
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// One result, when it is there.
template <class T>
__device__ __forceinline__ T receive(const std::uint32_t* from, std::uint32_t phase) {
  std::uint32_t word;
  do {
    word = load_word(from);
  } while (!is_of(phase, word));
  return result_of<T>(word);
}

}  // namespace bloomery::resident
