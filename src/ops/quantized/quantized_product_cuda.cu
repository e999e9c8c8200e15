// A warp multiplies a row of the weights (an output column) with up to four rows of a; each lane
// takes 16 bytes of codes in turn, several of which are under way at once. More rows of a are more
// passes. Sums have a fixed order.
#include <algorithm>

#include "device/launch_cuda.cuh"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/quantized/codes.h"
#include "ops/quantized/quantized_product.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;
constexpr int kDepth = 4;     // packs of codes that a lane has under way
constexpr int kMostRows = 4;  // of a, at once
constexpr int kPackBytes = 16;

struct Problem {
  const void *a, *scales, *bias;
  const std::uint8_t* codes;
  void* d;
  std::int64_t n, k;
  int rows;  // at most kRows
  Activation activation;
};

using Codes = Pack<std::uint8_t, kPackBytes>;

template <QuantizedFormat kFormat>
inline constexpr int kPackNumbers = kFormat == QuantizedFormat::nf4 ? 2 * kPackBytes : kPackBytes;

__device__ float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::gelu_tanh:
      return activate<Activation::gelu_tanh>(x);
    case Activation::gelu_erf:
      return activate<Activation::gelu_erf>(x);
    case Activation::silu:
      return activate<Activation::silu>(x);
    case Activation::relu:
      return activate<Activation::relu>(x);
    case Activation::squared_relu:
      return activate<Activation::squared_relu>(x);
    default:
      return x;
  }
}

// The number of code i of a pack; of nf4 in parts of its scale, from a table in shared memory, else
// times the largest.
template <QuantizedFormat kFormat>
__device__ __forceinline__ float number_of(const Codes& codes, int i, const float* table) {
  if constexpr (kFormat == QuantizedFormat::nf4) {
    return table[i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15];
  } else {
    return ByteCode<kFormat>::number(codes[i]);
  }
}

template <QuantizedFormat kFormat, int kRows, class T>
__device__ __forceinline__ void multiply(const Codes& codes, std::int64_t pack, const T* scales,
                                         const float* table, const Problem& p,
                                         float (&sums)[kRows]) {
  constexpr int kNumbers = kPackNumbers<kFormat>;
  const T* const a = static_cast<const T*>(p.a) + pack * kNumbers;
  float scale = 1;
  if constexpr (kFormat == QuantizedFormat::nf4) {
    scale = to_float(scales[pack * kNumbers / kNf4Block]);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kNumbers; i += kPackSize<T>) {
      const auto x = load_pack<kPackSize<T>>(a + min(r, p.rows - 1) * p.k + i);
#pragma unroll
      for (int j = 0; j < kPackSize<T>; ++j) {
        sum = fmaf(to_float(x[j]), number_of<kFormat>(codes, i + j, table), sum);
      }
    }
    sums[r] = fmaf(sum, scale, sums[r]);
  }
}

template <QuantizedFormat kFormat, int kRows, class T>
__global__ void __launch_bounds__(kThreads) product(const __grid_constant__ Problem p) {
  const int lane = threadIdx.x % kWarpSize;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  __shared__ float table[kNf4Codes];
  if (kFormat == QuantizedFormat::nf4 && threadIdx.x < kNf4Codes) {
    table[threadIdx.x] = nf4_number(static_cast<int>(threadIdx.x));
  }
  __syncthreads();
  let_next_kernel_start();
  wait_for_kernels_before();
  if (column >= p.n) {
    return;
  }
  const std::int64_t packs = p.k / kPackNumbers<kFormat>;
  const std::uint8_t* const codes = p.codes + column * packs * kPackBytes;
  const std::int64_t row_scales = kFormat == QuantizedFormat::nf4 ? p.k / kNf4Block : 1;
  const T* const scales = static_cast<const T*>(p.scales) + column * row_scales;
  float sums[kRows] = {};
  for (std::int64_t first = lane; first < packs; first += kDepth * kWarpSize) {
    Codes taken[kDepth];
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if (first + i * kWarpSize < packs) {
        taken[i] = load_pack<kPackBytes>(codes + (first + i * kWarpSize) * kPackBytes);
      }
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if (first + i * kWarpSize < packs) {
        multiply<kFormat, kRows>(taken[i], first + i * kWarpSize, scales, table, p, sums);
      }
    }
  }
  float factor = 1;
  if constexpr (kFormat != QuantizedFormat::nf4) {
    factor = to_float(scales[0]) / ByteCode<kFormat>::kLargest;
  }
  const float bias = p.bias != nullptr ? to_float(static_cast<const T*>(p.bias)[column]) : 0.0f;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0 && r < p.rows) {
      static_cast<T*>(p.d)[r * p.n + column] =
          from_float<T>(activated(p.activation, sum * factor + bias));
    }
  }
}

template <QuantizedFormat kFormat, class T>
void launch_rows(Stream& stream, const Problem& p) {
  const dim3 grid(num_blocks(p.n, kWarps));
  if (p.rows == 1) {
    launch_kernel(stream, product<kFormat, 1, T>, grid, kThreads, p);
  } else {
    launch_kernel(stream, product<kFormat, kMostRows, T>, grid, kThreads, p);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const QuantizedProduct& k) {
  dispatch_device(k.a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Problem p{.a = nullptr,
              .scales = k.scales.data,
              .bias = k.bias.data,
              .codes = k.codes.as<std::uint8_t>(),
              .d = nullptr,
              .n = k.codes.rows(),
              .k = k.a.columns(),
              .rows = 0,
              .activation = k.activation};
    for (std::int64_t row = 0; row < k.a.rows(); row += kMostRows) {
      p.a = k.a.as<T>() + row * p.k;
      p.d = k.d.as<T>() + row * p.n;
      p.rows = static_cast<int>(std::min<std::int64_t>(kMostRows, k.a.rows() - row));
      if (k.format == QuantizedFormat::nf4) {
        launch_rows<QuantizedFormat::nf4, T>(stream, p);
      } else {
        dispatch_bytes(k.format,
                       [&](auto format) { launch_rows<decltype(format)::format, T>(stream, p); });
      }
    }
  });
}

}  // namespace bloomery
