// A warp multiplies a row of b (an output column) with all rows of a, each lane 16-byte packs in
// turn; long rows are divided among the warps of a block, so that all of a warp's loads are under
// way at once. More columns for a warp would take registers that further blocks need more. Sums
// have a fixed order.
//
// Where kernels overlap, the first packs of a lasting b are asked for before the kernel that makes
// a ends.
//
// Tried: columns in turns by blocks that stay, a's rows in registers; tensor cores on 16-byte
// pieces. Both gain for large matrices (1.5B parameters) and lose for small ones (124M).
#include "device/launch_cuda.cuh"
#include "ops/activation/activated.cuh"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/matmul/few_rows.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;
constexpr int kDepth = 4;  // packs of a row that a lane has under way

struct Problem {
  const void *a, *b, *bias;
  void* d;
  std::int64_t n, k;
  int rows;   // at most kRows
  int parts;  // warps that share rows of b
  bool b_lasts;
  Activation activation;
};

template <class T>
using Packs = Pack<T, kPackSize<T>>[kDepth];

// Packs first, first + 32, .. below `end` of a row.
template <class T>
__device__ __forceinline__ void load(const T* b, int first, int end, Packs<T>& packs) {
#pragma unroll
  for (int i = 0; i < kDepth; ++i) {
    const int pack = first + i * kWarpSize;
    if (pack < end) {
      packs[i] = load_pack<kPackSize<T>>(b + pack * kPackSize<T>);
    }
  }
}

template <int kRows, class T>
__device__ __forceinline__ void multiply(const Packs<T>& packs, const T* a, const Problem& p,
                                         int first, int end, float (&sums)[kRows]) {
#pragma unroll
  for (int i = 0; i < kDepth; ++i) {
    const int pack = first + i * kWarpSize;
    if (pack < end) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const auto x = load_pack<kPackSize<T>>(a + min(r, p.rows - 1) * p.k + pack * kPackSize<T>);
#pragma unroll
        for (int j = 0; j < kPackSize<T>; ++j) {
          sums[r] = fmaf(to_float(x[j]), to_float(packs[i][j]), sums[r]);
        }
      }
    }
  }
}

template <int kRows, class T, class Out>
__global__ void __launch_bounds__(kThreads) product(const __grid_constant__ Problem p) {
  __shared__ float shared[kWarps][kRows];
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int part = warp % p.parts;
  const std::int64_t column = std::int64_t{blockIdx.x} * (kWarps / p.parts) + warp / p.parts;
  const bool inside = column < p.n;
  const int all = static_cast<int>(p.k / kPackSize<T>);
  const int share = (all + p.parts - 1) / p.parts;
  const int end = inside ? min(all, (part + 1) * share) : 0;
  const T* const b = static_cast<const T*>(p.b) + column * p.k;
  const T* const a = static_cast<const T*>(p.a);

  let_next_kernel_start();
  const bool writes = inside && part == 0 && lane < p.rows;
  const float bias =
      writes && p.bias != nullptr ? to_float(static_cast<const T*>(p.bias)[column]) : 0.0f;
  float sums[kRows] = {};
  Packs<T> packs;
  int first = part * share + lane;
  if (!p.b_lasts) {
    wait_for_kernels_before();
  }
  load(b, first, end, packs);
  wait_for_kernels_before();
  while (first < end) {
    multiply<kRows>(packs, a, p, first, end, sums);
    first += kDepth * kWarpSize;
    load(b, first, end, packs);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0) {
      shared[warp][r] = sum;
    }
  }
  __syncthreads();
  if (writes) {
    float sum = bias;
    for (int i = 0; i < p.parts; ++i) {
      sum += shared[warp + i][lane];
    }
    static_cast<Out*>(p.d)[lane * p.n + column] = from_float<Out>(activated(p.activation, sum));
  }
}

template <int kRows, class T, class Out>
void launch_rows(Stream& stream, const Problem& p) {
  launch_kernel(stream, product<kRows, T, Out>, dim3(num_blocks(p.n, kWarps / p.parts)), kThreads,
                p);
}

template <class T, class Out>
void launch_types(Stream& stream, const Problem& p) {
  if (p.rows == 1) {
    launch_rows<1, T, Out>(stream, p);
  } else if (p.rows == 2) {
    launch_rows<2, T, Out>(stream, p);
  } else {
    launch_rows<kFewRows, T, Out>(stream, p);
  }
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace

bool multiply_few_rows(Stream& stream, const Matmul& k, const MatmulSizes& sizes) {
  const std::int64_t row_bytes = sizes.k * static_cast<std::int64_t>(size_of(k.a.dtype));
  if (sizes.m > kFewRows || sizes.m * sizes.n * sizes.k == 0 || k.transpose_a || !k.transpose_b ||
      k.add || k.before || k.derivative != Activation::none || row_bytes % 16 != 0 ||
      !aligned(k.a.data) || !aligned(k.b.data)) {
    return false;
  }
  const std::int64_t packs = row_bytes / 16;
  Problem p{.a = k.a.data,
            .b = k.b.data,
            .bias = k.bias.data,
            .d = k.d.data,
            .n = sizes.n,
            .k = sizes.k,
            .rows = static_cast<int>(sizes.m),
            .parts = 1,
            .b_lasts = k.b_lasts,
            .activation = k.activation};
  while (p.parts < kWarps && packs > p.parts * kDepth * kWarpSize) {
    p.parts *= 2;
  }
  dispatch_device(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (k.d.dtype == k.a.dtype) {
      launch_types<T, T>(stream, p);
    } else {
      launch_types<T, float>(stream, p);
    }
  });
  return true;
}

}  // namespace bloomery
