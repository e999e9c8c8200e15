// Grouped products without tensor cores, for fp32, for extents that the copy engine cannot take and
// for GPUs before sm_90; the choice between the two.
#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/moe/grouped_epilogue.cuh"

namespace bloomery {
namespace {

constexpr int kTile = 64, kDepth = 16, kThreads = 256;
constexpr int kGroupRows = 128;  // group_alignment()

// A tile of 64 x 64 sums by 256 threads, 4 x 4 each: rows 4 * (thread / 16), columns 4 * (thread %
// 16) and following. a_at(row, k) and b_at(k, column) give numbers, zero outside.
template <class A, class B>
__device__ __forceinline__ void tile_sums(float (&sums)[4][4], std::int64_t depth, const A& a_at,
                                          const B& b_at) {
  __shared__ float a[kDepth][kTile + 1], b[kDepth][kTile + 1];
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
  for (std::int64_t first = 0; first < depth; first += kDepth) {
    for (int i = threadIdx.x; i < kDepth * kTile; i += kThreads) {
      a[i % kDepth][i / kDepth] = a_at(i / kDepth, first + i % kDepth);
      b[i / kTile][i % kTile] = b_at(first + i / kTile, i % kTile);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sums[r][c] += a[k][row + r] * b[k][column + c];
        }
      }
    }
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) grouped_product(ProductOnDevice<T> p) {
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const int group = p.tiles[first_row / kGroupRows];
  if (group < 0) {
    return;
  }
  const T* const a = p.a + first_row * p.k;
  const T* const b = p.b + group * p.n * p.k;
  float sums[4][4] = {};
  tile_sums(
      sums, p.k, [&](int r, std::int64_t k) { return k < p.k ? to_float(a[r * p.k + k]) : 0.0f; },
      [&](std::int64_t k, int c) {
        const std::int64_t column = first_column + c;
        return k < p.k && column < p.n
                   ? to_float(b[p.transpose_b ? column * p.k + k : k * p.n + column])
                   : 0.0f;
      });
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      const std::int64_t row = first_row + threadIdx.x / 16 * 4 + r;
      const std::int64_t column = first_column + threadIdx.x % 16 * 4 + c;
      if (column >= p.n) {
        continue;
      }
      const std::int64_t place = row * p.n + column;
      float sum = sums[r][c];
      if (p.bias != nullptr) {
        sum += to_float(p.bias[group * p.n + column]);
      }
      if (p.before != nullptr) {
        p.before[place] = from_float<T>(sum);
      }
      sum = activated<T>(p.activation, sum);
      if (p.derivative != Activation::none) {
        sum *= derivative_of<T>(p.derivative, to_float(p.derivative_at[place]));
      }
      p.d[place] = from_float<T>(sum);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) weight_gradient(GradientOnDevice<T> p) {
  const std::int64_t m = p.m, n = p.n;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t begin = p.offsets[blockIdx.z], depth = p.offsets[blockIdx.z + 1] - begin;
  const T* const a = p.a + begin * m;
  const T* const b = p.b + begin * n;
  float sums[4][4] = {};
  tile_sums(
      sums, depth,
      [&](int r, std::int64_t k) {
        return k < depth && first_row + r < m ? to_float(a[k * m + first_row + r]) : 0.0f;
      },
      [&](std::int64_t k, int c) {
        return k < depth && first_column + c < n ? to_float(b[k * n + first_column + c]) : 0.0f;
      });
  float* const d = p.d + blockIdx.z * m * n;
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) {
      const std::int64_t row = first_row + threadIdx.x / 16 * 4 + r;
      const std::int64_t column = first_column + threadIdx.x % 16 * 4 + c;
      if (row < m && column < n) {
        float& to = d[row * n + column];
        to = p.add ? to + sums[r][c] : sums[r][c];
      }
    }
  }
}

// Sums of the columns of each tile of rows, then of the tiles of each group.
template <class T>
__global__ void tile_column_sums(const T* x, const std::int32_t* tiles, float* parts, int n) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= n || tiles[blockIdx.y] < 0) {
    return;
  }
  const T* const first = x + std::int64_t{blockIdx.y} * kGroupRows * n + column;
  float sum = 0;
  for (int row = 0; row < kGroupRows; ++row) {
    sum += to_float(first[std::int64_t{row} * n]);
  }
  parts[std::int64_t{blockIdx.y} * n + column] = sum;
}

__global__ void group_column_sums(const float* parts, const std::int32_t* offsets, float* sums,
                                  int n, bool add) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= n) {
    return;
  }
  float sum = 0;
  for (int tile = offsets[blockIdx.y] / kGroupRows; tile < offsets[blockIdx.y + 1] / kGroupRows;
       ++tile) {
    sum += parts[std::int64_t{tile} * n + column];
  }
  float& to = sums[std::int64_t{blockIdx.y} * n + column];
  to = add ? to + sum : sum;
}

}  // namespace

void run(OnCuda, Stream& stream, const GroupedProduct& k) {
  if (grouped_run_sm90(stream, k)) {
    return;
  }
  const dim3 grid(num_blocks(k.n, kTile), num_blocks(k.a.rows(), kTile));
  dispatch_device(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    grouped_product<T><<<grid, kThreads, 0, cuda_stream(stream)>>>(ProductOnDevice<T>(k));
    check_launch("grouped_product");
  });
}

void run(OnCuda, Stream& stream, const GroupedWeightGradient& k) {
  if (grouped_run_sm90(stream, k)) {
    return;
  }
  const dim3 grid(num_blocks(k.b.columns(), kTile), num_blocks(k.a.columns(), kTile),
                  static_cast<unsigned>(k.groups.offsets.numel() - 1));
  dispatch_device(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    weight_gradient<T><<<grid, kThreads, 0, cuda_stream(stream)>>>(GradientOnDevice<T>(k));
    check_launch("grouped_weight_gradient");
  });
}

void run(OnCuda, Stream& stream, const GroupedColumnSum& k) {
  const std::int64_t tiles = k.groups.tiles.numel(), n = k.x.columns();
  const Tensor parts = Tensor::empty(stream, DType::fp32, {tiles, n});
  const unsigned columns = num_blocks(n, kThreads);
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    tile_column_sums<T>
        <<<dim3(columns, static_cast<unsigned>(tiles)), kThreads, 0, cuda_stream(stream)>>>(
            k.x.as<T>(), k.groups.tiles.as<std::int32_t>(), static_cast<float*>(parts.data()),
            static_cast<int>(n));
    check_launch("tile_column_sums");
  });
  group_column_sums<<<dim3(columns, static_cast<unsigned>(k.groups.offsets.numel() - 1)), kThreads,
                      0, cuda_stream(stream)>>>(static_cast<const float*>(parts.data()),
                                                k.groups.offsets.as<std::int32_t>(),
                                                k.sums.as<float>(), static_cast<int>(n), k.add);
  check_launch("group_column_sums");
}

}  // namespace bloomery
