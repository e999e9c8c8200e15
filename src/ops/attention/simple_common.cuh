// Building blocks of the fp32 attention kernels. A block of eight warps owns 8 * kRows rows of one
// head (queries, or keys) and walks the other side in tiles of 32, one row per lane. Channels are
// taken in chunks through shared memory, so that any head_dim fits.
#pragma once

#include "ops/attention/head_rows.cuh"

namespace bloomery::attention_cuda {

inline constexpr int kSimpleWarps = 8, kSimpleThreads = kSimpleWarps * kWarpSize;
inline constexpr int kSimpleChunk = 64;
inline constexpr int kSimpleStride = kSimpleChunk + 1;  // of a tile's rows: no two in one bank

// Shared memory of a block: a tile, the weights of each warp, and `num_owned` arrays of own rows.
template <int kRows>
struct SimpleShared {
  float* tile;     // [32][kSimpleStride]
  float* weights;  // this warp's [32][kRows]
  float* owned;    // arrays of [8 * kRows][head_dim]
  int head_dim;

  static constexpr int kOwned = kSimpleWarps * kRows;
  static constexpr int kFixed = kWarpSize * kSimpleStride + kSimpleThreads * kRows;

  __device__ SimpleShared(float* memory, int dim)
      : tile(memory),
        weights(memory + kWarpSize * kSimpleStride + warp() * kWarpSize * kRows),
        owned(memory + kFixed),
        head_dim(dim) {}
  static std::size_t bytes(std::int64_t dim, int num_owned) {
    return static_cast<std::size_t>(kFixed + num_owned * kOwned * dim) * sizeof(float);
  }

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarpSize; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarpSize; }

  __device__ float* array(int index) const { return owned + index * kOwned * head_dim; }
  __device__ float* warp_rows(int index) const { return array(index) + warp() * kRows * head_dim; }

  // Fills array `index` with rows from `first` on (zeros past the end), or with zeros.
  template <class T>
  __device__ void load_owned(int index, const HeadRows<const T>& rows, int first) const {
    for (int i = static_cast<int>(threadIdx.x); i < kOwned * head_dim; i += kSimpleThreads) {
      const int row = first + i / head_dim, channel = i % head_dim;
      array(index)[i] = row < rows.length ? to_float(rows.data[row * rows.stride + channel]) : 0.0f;
    }
  }
  __device__ void clear_owned(int index) const {
    for (int i = static_cast<int>(threadIdx.x); i < kOwned * head_dim; i += kSimpleThreads) {
      array(index)[i] = 0;
    }
  }
  template <class T>
  __device__ void store_owned(int index, const HeadRows<T>& rows, int first, float factor) const {
    for (int i = static_cast<int>(threadIdx.x); i < kOwned * head_dim; i += kSimpleThreads) {
      const int row = first + i / head_dim, channel = i % head_dim;
      if (row < rows.length) {
        rows.data[row * rows.stride + channel] = from_float<T>(array(index)[i] * factor);
      }
    }
  }

  // Channels [channel, channel + kSimpleChunk) of rows [first, first + 32) into the tile, for all
  // warps; zeros where there is nothing.
  template <class T>
  __device__ void load_chunk(const HeadRows<const T>& rows, int first, int channel) const {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kWarpSize * kSimpleChunk; i += kSimpleThreads) {
      const int row = i / kSimpleChunk, c = i % kSimpleChunk;
      const bool exists = first + row < rows.length && channel + c < head_dim;
      tile[row * kSimpleStride + c] =
          exists ? to_float(rows.data[(first + row) * rows.stride + channel + c]) : 0.0f;
    }
    __syncthreads();
  }

  // dots[r] = own row r of this warp (in array `index`) times this lane's row of the other side.
  template <class T>
  __device__ void multiply(float (&dots)[kRows], int index, const HeadRows<const T>& rows,
                           int first) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      dots[r] = 0;
    }
    for (int channel = 0; channel < head_dim; channel += kSimpleChunk) {
      load_chunk(rows, first, channel);
      const int count = min(kSimpleChunk, head_dim - channel);
      const float* own = warp_rows(index) + channel;
      for (int c = 0; c < count; ++c) {
        const float x = tile[lane() * kSimpleStride + c];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          dots[r] += own[r * head_dim + c] * x;
        }
      }
    }
  }

  // Own row r in array `index` = factors[r] * itself + sum over the tile's rows j of weight(j, r)
  // times row j, where lane j gives weight(j, r).
  template <class T>
  __device__ void accumulate(int index, const float (&factors)[kRows],
                             const float (&lane_weights)[kRows], const HeadRows<const T>& rows,
                             int first) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      weights[lane() * kRows + r] = lane_weights[r];
    }
    for (int channel = 0; channel < head_dim; channel += kSimpleChunk) {
      load_chunk(rows, first, channel);  // its barriers also publish the weights
      for (int c = lane(); c < min(kSimpleChunk, head_dim - channel); c += kWarpSize) {
        float sums[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          sums[r] = factors[r] * warp_rows(index)[r * head_dim + channel + c];
        }
        for (int j = 0; j < kWarpSize; ++j) {
          const float x = tile[j * kSimpleStride + c];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            sums[r] += weights[j * kRows + r] * x;
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          warp_rows(index)[r * head_dim + channel + c] = sums[r];
        }
      }
    }
    __syncwarp();  // before the weights are overwritten
  }
};

// What a probability is multiplied by: zero or the dropout scale; one without dropout.
__device__ inline float dropout_factor(const AttentionProblem& problem, int sequence, int head,
                                       int query, int key) {
  if (problem.dropout_threshold == 0) {
    return 1;
  }
  const std::int64_t token = sequence * problem.query_length + query;
  const std::int32_t* const places = problem.places_of_keys(sequence);
  const auto global_head = static_cast<std::uint32_t>(problem.first_head + head);
  const auto k = static_cast<std::uint32_t>(places != nullptr ? places[key] : key);
  const RandomBlock bits =
      dropout_block(problem.dropout_key, problem.places.sample(token), problem.places.place(token),
                    global_head, attention_dropout_block(k));
  return dropout_keeps(bits, attention_dropout_lane(k), problem.dropout_threshold)
             ? dropout_scale(problem.dropout_threshold)
             : 0.0f;
}

// Whether query `query` sees key `key`, of which either may be past the end.
__device__ inline bool visible(const AttentionProblem& problem, int sequence, int query, int key) {
  if (query >= problem.query_length) {
    return false;
  }
  const std::int32_t* const places = problem.places_of_keys(sequence);
  if (places == nullptr) {
    const KeyRange range = visible_keys(problem, sequence, query);
    return key >= range.begin && key < range.end;
  }
  const std::int64_t token = sequence * problem.query_length + query;
  return key < problem.key_length &&
         (!problem.causal || (places[key] <= problem.places.place(token) &&
                              places[key] >= problem.window_begin(problem.places.place(token)))) &&
         (problem.key_begin == nullptr || places[key] >= problem.key_begin[token]) &&
         (problem.key_end == nullptr || places[key] < problem.key_end[token]);
}

// The place of a key less that of a query, which exist.
__device__ inline int distance_between(const AttentionProblem& problem, int sequence, int query,
                                       int key) {
  const std::int32_t* const places = problem.places_of_keys(sequence);
  return places != nullptr
             ? places[key] - problem.places.place(sequence * problem.query_length + query)
             : key - query - static_cast<int>(problem.key_length - problem.query_length);
}

// The sums of one warp's gradients of the bias, by distance, in shared memory.
struct WarpBiasGrad {
  float* sums;
  int last;  // index of the largest distance; -1: nothing is wanted

  __device__ WarpBiasGrad(float* shared, const AttentionProblem& problem, bool wanted)
      : sums(shared + threadIdx.x / kWarpSize * (2 * problem.bias_reach + 1)),
        last(wanted ? static_cast<int>(2 * problem.bias_reach) : -1) {
    for (int i = static_cast<int>(threadIdx.x) % kWarpSize; i <= last; i += kWarpSize) {
      sums[i] = 0;
    }
    __syncwarp();
  }
  // Each lane gives the gradient of one key of the same query, in a fixed order: keys within reach
  // have different distances, those at the ends are added up first.
  __device__ void add(bool seen, int index, float grad) const {
    const float first_sum = warp_sum(seen && index == 0 ? grad : 0.0f);
    const float last_sum = warp_sum(seen && index == last ? grad : 0.0f);
    if (seen && index > 0 && index < last) {
      sums[index] += grad;
    }
    if (threadIdx.x % kWarpSize == 0) {
      sums[0] += first_sum;
      sums[last] += last_sum;
    }
    __syncwarp();
  }
};

// Where to look for the keys that queries [first, first + count) see: anywhere, when keys have
// places of their own.
__device__ inline KeyRange candidates(const AttentionProblem& problem, int sequence, int first,
                                      int count) {
  return problem.key_places != nullptr ? KeyRange{0, static_cast<int>(problem.key_length)}
                                       : seen_by_any(problem, sequence, first, count);
}

}  // namespace bloomery::attention_cuda
