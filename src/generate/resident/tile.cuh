// A tile of weights times the input: up to 16 rows of b, of some columns, on tensor cores. The sum
// over columns has no order of its own, so a thread takes those that lie next to each other in
// memory, and of the input the same.
#pragma once

#include <cuda_fp8.h>

#include "generate/resident/shared.cuh"
#include "ops/attention/mma_sm80.cuh"

namespace bloomery::resident {

// Two codes as two numbers: the lower or the upper half of a word.
template <QuantizedFormat kFormat, int kHalf, class T>
__device__ __forceinline__ std::uint32_t decoded(std::uint32_t word) {
  if constexpr (kFormat == QuantizedFormat::int8 && std::is_same_v<T, __nv_bfloat16>) {
    // Bits of 128 + the lower seven, less those of 128, or of 256 where the eighth is set.
    const std::uint32_t bits = __byte_perm(word, 0x43434343u, kHalf == 0 ? 0x4140 : 0x4342);
    const std::uint32_t value = bits & 0xFF7FFF7Fu, less = bits & 0xFF80FF80u;
    __nv_bfloat162 a, b;
    memcpy(&a, &value, sizeof a);
    memcpy(&b, &less, sizeof b);
    a = __hsub2(a, b);
    std::uint32_t numbers;
    memcpy(&numbers, &a, sizeof numbers);
    return numbers;
  } else if constexpr (kFormat == QuantizedFormat::int8) {  // 1024 + 128 + code, as a number's bits
    const std::uint32_t biased =
        __byte_perm(word ^ 0x80808080u, 0x64646464u, kHalf == 0 ? 0x4140 : 0x4342);
    __half2 numbers;
    memcpy(&numbers, &biased, sizeof numbers);
    numbers = __hsub2(numbers, __half2half2(__ushort_as_half(0x6480)));
    std::uint32_t bits;
    memcpy(&bits, &numbers, sizeof bits);
    return bits;
  } else {
    const auto pair = static_cast<__nv_fp8x2_storage_t>(kHalf == 0 ? word : word >> 16);
    const float2 numbers = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)));
    return attention_cuda::pack_pair<T>(numbers.x, numbers.y);  // exact
  }
}

// What a warp has of the products of 16 rows of b with up to eight rows of the input.
struct GroupSums {
  float even[4] = {}, odd[4] = {};

  // Of the first `count` rows of b, to kept[row * kRows + row of the input] of this warp.
  template <int kRows>
  __device__ __forceinline__ void keep(int count, float* kept) const {
    const int row = static_cast<int>(threadIdx.x % kLanes / 4);
    kept += threadIdx.x / kLanes;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const auto q = threadIdx.x % 4 * 2 + static_cast<unsigned>(j);
      if (q < kRows && row < count) {
        kept[(static_cast<unsigned>(row) * kRows + q) * kWarps] = even[j] + odd[j];
      }
      if (q < kRows && row + 8 < count) {
        kept[(static_cast<unsigned>(row + 8) * kRows + q) * kWarps] = even[2 + j] + odd[2 + j];
      }
    }
  }
};

// What a lane takes of a tile, step by step: 16 bytes, or 8 of codes, of rows lane / 4 and eight
// further, from its warp's columns. Of the input it takes the same columns, of row lane / 4; where
// the input has no such row, any other does: its products come to nobody's sums. The whole tile's
// are asked for at once, before those of the one before are used.
template <QuantizedFormat kFormat>
struct LanePart {
  static constexpr bool kCodes = kFormat != QuantizedFormat::none;
  static constexpr int kSize = kCodes ? 1 : 2;            // bytes of a weight
  static constexpr int kColumns = kWarps * kStepColumns;  // of a step of all warps
  static constexpr int kSteps = kMaxChunk * 2 / kSize / kColumns;
  static constexpr int kWords = kPackElements * kSize / 4;  // of a row, in a step
  std::uint32_t low[kSteps][kWords], high[kSteps][kWords];

  static __device__ __forceinline__ int row() { return static_cast<int>(threadIdx.x) % kLanes / 4; }
  static __device__ __forceinline__ int column() {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / kLanes * kStepColumns + thread % 4 * kPackElements;
  }

  // Of rows that a tile does not have it takes the last one; columns that it does not have are
  // whatever lies there.
  __device__ __forceinline__ void load(const unsigned char* tile, int rows) {
    constexpr int kPitch = tile_pitch(kFormat);
    const unsigned char* const from = tile + column() * kSize;
    const unsigned char* const low_row = from + min(row(), rows - 1) * kPitch;
    const unsigned char* const high_row = from + min(row() + 8, rows - 1) * kPitch;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      load_words(low[step], low_row + step * kColumns * kSize);
      load_words(high[step], high_row + step * kColumns * kSize);
    }
  }

  template <class T>
  __device__ __forceinline__ void multiply_step(int step, const T* x, GroupSums& sums) const {
    const uint4 b = *reinterpret_cast<const uint4*>(x + step * kColumns);
    std::uint32_t a[2][kPackElements / 2];
#pragma unroll
    for (int i = 0; i < kPackElements / 2; ++i) {
      a[0][i] = weights<T>(low[step], i);
      a[1][i] = weights<T>(high[step], i);
    }
    attention_cuda::multiply_add<T>(sums.even, {a[0][0], a[1][0], a[0][1], a[1][1]}, b.x, b.y);
    attention_cuda::multiply_add<T>(sums.odd, {a[0][2], a[1][2], a[0][3], a[1][3]}, b.z, b.w);
  }

  // By this lane's input, of a tile of so many columns.
  template <class T>
  __device__ __forceinline__ void multiply(const T* x, int columns, GroupSums& sums) const {
    if (columns == kSteps * kColumns) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        multiply_step(step, x, sums);
      }
    } else {
      const int left = columns - static_cast<int>(threadIdx.x) / kLanes * kStepColumns;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (step * kColumns < left) {
          multiply_step(step, x, sums);
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ void load_words(std::uint32_t (&to)[kWords],
                                                    const unsigned char* from) {
    if constexpr (kCodes) {
      const uint2 words = *reinterpret_cast<const uint2*>(from);
      to[0] = words.x;
      to[1] = words.y;
    } else {
      const uint4 words = *reinterpret_cast<const uint4*>(from);
      to[0] = words.x;
      to[1] = words.y;
      to[2] = words.z;
      to[3] = words.w;
    }
  }
  // Two weights.
  template <class T>
  static __device__ __forceinline__ std::uint32_t weights(const std::uint32_t (&words)[kWords],
                                                          int i) {
    if constexpr (kCodes) {
      return i % 2 == 0 ? decoded<kFormat, 0, T>(words[i / 2])
                        : decoded<kFormat, 1, T>(words[i / 2]);
    } else {
      return words[i];
    }
  }
};

}  // namespace bloomery::resident
