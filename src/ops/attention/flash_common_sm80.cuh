// What the flash forward and backward kernels share: tiles of a head in shared memory, the dropout
// bits of an accumulator row, and writing rows back.
#pragma once

#include "ops/attention/head_rows.cuh"
#include "ops/attention/mma_sm80.cuh"

namespace bloomery::attention_cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// Eight elements at `from`, of which the first `count` exist, when no vector access is possible.
template <class T>
__device__ __forceinline__ void copy_elements(std::uint32_t to, const T* from, int count) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float low = 2 * i < count ? to_float(from[2 * i]) : 0.0f;
    const float high = 2 * i + 1 < count ? to_float(from[2 * i + 1]) : 0.0f;
    words[i] = pack_pair<T>(low, high);
    store_shared(to + 4 * i, words[i]);
  }
}

// Starts copying rows [first, first + kRows) into the tile; zeros beyond the length and beyond
// head_dim. kVectors: rows are 16-byte aligned and head_dim is a multiple of eight.
template <int kRows, int kThreads, bool kVectors, class T, int kColumns>
__device__ __forceinline__ void load_tile(SharedTile<kColumns> tile, const HeadRows<const T>& rows,
                                          int first) {
  // kWide neighbouring threads copy one row, kDown rows at a time.
  constexpr int kUnits = kColumns / 8, kWide = kUnits % 8 == 0 ? 8 : 4, kDown = kThreads / kWide;
  static_assert(kRows % kDown == 0);
  const int thread_row = static_cast<int>(threadIdx.x) / kWide;
  const int thread_unit = static_cast<int>(threadIdx.x) % kWide;
  const T* from = rows.data + (first + thread_row) * rows.stride + thread_unit * 8;
#pragma unroll
  for (int row = 0; row < kRows; row += kDown) {
#pragma unroll
    for (int unit = 0; unit < kUnits; unit += kWide) {
      const std::uint32_t to = tile.base + tile.offset(thread_row + row, thread_unit + unit);
      const int elements = rows.head_dim - (thread_unit + unit) * 8;
      const bool valid = first + thread_row + row < rows.length && elements > 0;
      if constexpr (kVectors) {
        copy_async(to, from + unit * 8, valid);  // does not read unless valid
      } else {
        copy_elements(to, from + unit * 8, valid ? elements : 0);
      }
    }
    from += kDown * rows.stride;
  }
}

// Writes one accumulator piece (16 rows x 8 columns at (row, column) of the head), times `factor`.
// kVectors as in load_tile.
template <bool kVectors, class T>
__device__ __forceinline__ void store_piece(const HeadRows<T>& rows, int row, int column,
                                            const float (&c)[4], float factor_0, float factor_8) {
  const int lane = threadIdx.x % kWarpSize;
  const int channel = column + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = row + lane / 4 + 8 * half;
    const float factor = half == 0 ? factor_0 : factor_8;
    if (position >= rows.length || channel >= rows.head_dim) {
      continue;
    }
    T* to = rows.data + position * rows.stride + channel;
    const float low = c[2 * half] * factor, high = c[2 * half + 1] * factor;
    if constexpr (kVectors) {
      *reinterpret_cast<std::uint32_t*>(to) = pack_pair<T>(low, high);
    } else {
      to[0] = from_float<T>(low);
      if (channel + 1 < rows.head_dim) {
        to[1] = from_float<T>(high);
      }
    }
  }
}

// Dropout of this thread's elements in one accumulator row.
struct RowDropout {
  RandomKey key;
  std::int64_t sample;
  std::uint32_t head, shifted_threshold;

  __device__ __forceinline__ RowDropout(const AttentionProblem& problem, int sequence,
                                        int head_here)
      : key(problem.dropout_key),
        sample(problem.places.samples[sequence]),
        head(static_cast<std::uint32_t>(problem.first_head + head_here)),
        shifted_threshold(problem.dropout_threshold << 16) {}

  // Calls each(column, which, dropped) for this thread's eight elements in keys
  // [first_key, first_key + 32): accumulator piece `column` of four, element `which` of the pair.
  // A threshold of one (everything dropped) shifts to zero; then the factor of kept ones is zero.
  template <class Each>
  __device__ __forceinline__ void apply(std::int32_t place, int first_key, const Each& each) const {
    const std::uint32_t lane_key = static_cast<std::uint32_t>(first_key) + threadIdx.x % 4 * 2;
    const RandomBlock bits =
        dropout_block(key, sample, place, head, attention_dropout_block(lane_key));
#pragma unroll
    for (int column = 0; column < 4; ++column) {
      each(column, 0, (bits[column] << 16) < shifted_threshold);
      each(column, 1, bits[column] < shifted_threshold);
    }
  }
};

}  // namespace bloomery::attention_cuda
