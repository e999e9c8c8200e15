// A tile of weights times the input: up to 16 rows of b, of some columns, on tensor cores. The sum
// over columns has no order of its own, so a thread takes those that lie next to each other in
// memory, and of the input the same.
#pragma once

#include <cuda_fp8.h>

#include "ops/attention/mma_sm80.cuh"
#include "ops/resident/shared.cuh"

namespace bloomery::resident {

// Two codes as two numbers: the lower or the upper half of a word.
template <QuantizedFormat kFormat, int kHalf, class T>
__device__ __forceinline__ std::uint32_t decoded(std::uint32_t word) {
  float2 numbers;
  if constexpr (kFormat == QuantizedFormat::int8) {  // 2^23 + 128 + code, as the bits of a float
    constexpr std::uint32_t kMagic = 0x4B000000u, kFirst = kHalf == 0 ? 0x7440 : 0x7442;
    const std::uint32_t biased = word ^ 0x80808080u;
    numbers.x = __uint_as_float(__byte_perm(biased, kMagic, kFirst)) - 8388736.0f;
    numbers.y = __uint_as_float(__byte_perm(biased, kMagic, kFirst + 1)) - 8388736.0f;
  } else {
    const auto pair = static_cast<__nv_fp8x2_storage_t>(kHalf == 0 ? word : word >> 16);
    numbers = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)));
  }
  return attention_cuda::pack_pair<T>(numbers.x, numbers.y);  // exact
}

// Eight weights of a row.
template <QuantizedFormat kFormat, class T>
__device__ __forceinline__ uint4 load_weights(const unsigned char* row, int column) {
  if constexpr (kFormat == QuantizedFormat::none) {
    return *reinterpret_cast<const uint4*>(row + 2 * column);
  } else {
    const uint2 codes = *reinterpret_cast<const uint2*>(row + column);
    return {decoded<kFormat, 0, T>(codes.x), decoded<kFormat, 1, T>(codes.x),
            decoded<kFormat, 0, T>(codes.y), decoded<kFormat, 1, T>(codes.y)};
  }
}

template <class T>
struct InputRows {
  const T* first;
  int k, rows;

  // Eight numbers of row `row` from `column` on; zeros where there is no such row.
  __device__ __forceinline__ uint4 load(int row, int column) const {
    return row < rows ? *reinterpret_cast<const uint4*>(first + row * k + column)
                      : uint4{0, 0, 0, 0};
  }
};

// What a warp has of the products of 16 rows of b with up to eight rows of the input.
struct GroupSums {
  float even[4] = {}, odd[4] = {};

  // Of the first `count` rows of b, to kept[row * kRows + row of the input].
  template <int kRows>
  __device__ __forceinline__ void keep(int count, float* kept) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes, row = lane / 4;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int q = lane % 4 * 2 + j;
      if (q < kRows && row < count) {
        kept[row * kRows + q] = even[j] + odd[j];
      }
      if (q < kRows && row + 8 < count) {
        kept[(row + 8) * kRows + q] = even[2 + j] + odd[2 + j];
      }
    }
  }
};

// Rows that a tile does not have are whatever lies there: nothing of them comes to the others.
template <QuantizedFormat kFormat, class T>
__device__ __forceinline__ void multiply_tile(const unsigned char* tile, int pitch, int columns,
                                              const InputRows<T>& x, GroupSums& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes, row = lane / 4;
  const unsigned char* const low_row = tile + row * pitch;
  const unsigned char* const high_row = low_row + 8 * pitch;
#pragma unroll 3
  for (int first = static_cast<int>(threadIdx.x) / kLanes * kStepColumns; first < columns;
       first += kWarps * kStepColumns) {
    const int column = first + lane % 4 * kPackElements;
    const uint4 low = load_weights<kFormat, T>(low_row, column);
    const uint4 high = load_weights<kFormat, T>(high_row, column);
    const uint4 b = x.load(row, column);
    attention_cuda::multiply_add<T>(sums.even, {low.x, high.x, low.y, high.y}, b.x, b.y);
    attention_cuda::multiply_add<T>(sums.odd, {low.z, high.z, low.w, high.w}, b.z, b.w);
  }
}

}  // namespace bloomery::resident
