#include <cuda_fp8.h>

#include <algorithm>

#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/common/octet.cuh"
#include "ops/fp8/quantize.h"

namespace bloomery {
namespace {

// A block takes a tile of 128 x 128 numbers. A thread reads pieces of four rows by eight columns,
// in 16-byte accesses; a warp reads 64 bytes of each of its 32 rows. Transposed, the four bytes of
// a column in a piece are a word of shared memory; the stride between columns makes both sides free
// of bank conflicts. Columns of the tile leave in 16-byte accesses, 128 bytes each.
constexpr int kThreads = 256, kTile = 128, kPieceRows = 4;
constexpr int kWordsPerColumn = kTile / kPieceRows, kStride = kWordsPerColumn + 1;
constexpr int kPieceColumns = kTile / kOctet;  // of the tile, in pieces
constexpr int kPieces = kWordsPerColumn * kPieceColumns / kThreads;

template <Fp8Format kFormat>
__device__ __forceinline__ std::uint32_t encode_four(float a, float b, float c, float d) {
  constexpr auto kKind = kFormat == Fp8Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2({a, b}, __NV_SATFINITE, kKind);
  const std::uint32_t high = __nv_cvt_float2_to_fp8x2({c, d}, __NV_SATFINITE, kKind);
  return low | high << 16;
}

// Four rows of four bytes become four columns.
__device__ __forceinline__ void transpose_bytes(std::uint32_t (&w)[4]) {
  const std::uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const std::uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

// Sizes of numbers as integers, which have the same order; NaN is above all.
__device__ __forceinline__ int size_bits(float x) { return __float_as_int(x) & 0x7FFFFFFF; }

__device__ __forceinline__ void raise_amax(float* amax, int bits) {
  __shared__ int maxima[kThreads / kWarpSize];
  bits = warp_max(bits);
  if (threadIdx.x % kWarpSize == 0) {
    maxima[threadIdx.x / kWarpSize] = bits;
  }
  __syncthreads();
  if (threadIdx.x < kWarpSize) {
    bits = warp_max(threadIdx.x < kThreads / kWarpSize ? maxima[threadIdx.x] : 0);
    if (threadIdx.x == 0 && bits > __float_as_int(*amax)) {
      atomicMax(reinterpret_cast<int*>(amax), bits);
    }
  }
}

struct Matrix {
  std::int64_t rows, columns;
};

// Four rows by eight columns of a matrix: their bytes, and the largest size.
template <Fp8Format kFormat, class T>
__device__ __forceinline__ int encode_piece(const T* from, std::int64_t columns, float scale,
                                            std::uint32_t (&words)[2][kPieceRows]) {
  Octet<T> in[kPieceRows];
#pragma unroll
  for (int r = 0; r < kPieceRows; ++r) {
    in[r] = load_octet(from + r * columns);
  }
  int bits = 0;
#pragma unroll
  for (int r = 0; r < kPieceRows; ++r) {
#pragma unroll
    for (int i = 0; i < kOctet; ++i) {
      bits = max(bits, size_bits(in[r][i]));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = half * 4;
      words[half][r] = encode_four<kFormat>(in[r][i] * scale, in[r][i + 1] * scale,
                                            in[r][i + 2] * scale, in[r][i + 3] * scale);
    }
  }
  return bits;
}

// The columns of a tile, from shared memory to their rows of the transposed matrix.
__device__ __forceinline__ void store_columns(const std::uint32_t* tile, std::uint8_t* transposed,
                                              const Matrix& size, std::int64_t first_row,
                                              std::int64_t first_column) {
  constexpr int kPacks = kWordsPerColumn / 4;  // of 16 bytes in a column
  for (int i = threadIdx.x; i < kTile * kPacks; i += kThreads) {
    const int column = i / kPacks, pack = i % kPacks;
    const std::int64_t row = first_row + pack * 16;
    if (first_column + column < size.columns && row < size.rows) {
      Pack<std::uint32_t, 4> out;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        out[j] = tile[column * kStride + pack * 4 + j];
      }
      std::uint8_t* const to = transposed + (first_column + column) * size.rows + row;
      store_pack(reinterpret_cast<std::uint32_t*>(to), out);
    }
  }
}

template <Fp8Format kFormat, bool kRows, bool kTransposed, class T>
__global__ void __launch_bounds__(kThreads)
    quantize(const T* x, Matrix size, const float* scale_at, std::uint8_t* rows,
             std::uint8_t* transposed, float* amax) {
  __shared__ std::uint32_t tile[kTransposed ? kTile * kStride : 1];
  const float scale = *scale_at;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  int bits = 0;
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    // A warp has four pieces beside each other, of eight groups of rows.
    const int unit = warp * kPieces + p;
    const int piece_column = unit % (kPieceColumns / 4) * 4 + lane % 4;
    const int piece_row = unit / (kPieceColumns / 4) * 8 + lane / 4;
    const std::int64_t row = first_row + piece_row * kPieceRows;
    const std::int64_t column = first_column + piece_column * kOctet;
    if (row >= size.rows || column >= size.columns) {
      continue;
    }
    std::uint32_t words[2][kPieceRows];  // of the left and the right four columns
    const std::int64_t at = row * size.columns + column;
    bits = max(bits, encode_piece<kFormat>(x + at, size.columns, scale, words));
#pragma unroll
    for (int r = 0; kRows && r < kPieceRows; ++r) {
      store_pack(reinterpret_cast<std::uint32_t*>(rows + at + r * size.columns),
                 Pack<std::uint32_t, 2>{words[0][r], words[1][r]});
    }
#pragma unroll
    for (int half = 0; kTransposed && half < 2; ++half) {
      transpose_bytes(words[half]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        tile[(piece_column * kOctet + half * 4 + i) * kStride + piece_row] = words[half][i];
      }
    }
  }
  if (amax != nullptr) {
    raise_amax(amax, bits);
  }
  if constexpr (kTransposed) {
    __syncthreads();
    store_columns(tile, transposed, size, first_row, first_column);
  }
}

template <Fp8Format kFormat, bool kRows, bool kTransposed, class T>
void launch_quantize(Stream& stream, const Quantize& k) {
  const std::int64_t rows = k.x.rows(), columns = k.x.columns();
  const dim3 grid(num_blocks(columns, kTile), num_blocks(rows, kTile));
  quantize<kFormat, kRows, kTransposed, T><<<grid, kThreads, 0, cuda_stream(stream)>>>(
      k.x.as<T>(), Matrix{rows, columns}, k.scale.as<float>(), k.rows.as<std::uint8_t>(),
      k.transposed.as<std::uint8_t>(), k.amax.as<float>());
  check_launch("quantize");
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    largest_size(const T* x, std::int64_t count, float* amax) {
  int bits = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count / kOctet;
       i += step) {
    const Octet<T> in = load_octet(x + i * kOctet);
#pragma unroll
    for (int j = 0; j < kOctet; ++j) {
      bits = max(bits, size_bits(in[j]));
    }
  }
  raise_amax(amax, bits);
}

}  // namespace

void run(OnCuda, Stream& stream, const Quantize& k) {
  check_quantize(k);
  check(fits_octets(k.x.columns(), k.x.data, k.rows.data, k.transposed.data),
        "fp8: matrices must start at multiples of 16 bytes");
  if (k.x.numel() == 0) {
    return;
  }
  dispatch_fp8(k.format, [&](auto format) {
    constexpr Fp8Format kFormat = decltype(format)::format;
    dispatch_device(k.x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (k.rows && k.transposed) {
        launch_quantize<kFormat, true, true, T>(stream, k);
      } else if (k.transposed) {
        launch_quantize<kFormat, false, true, T>(stream, k);
      } else {
        launch_quantize<kFormat, true, false, T>(stream, k);
      }
    });
  });
}

void run(OnCuda, Stream& stream, const RaiseAmax& k) {
  check(fits_octets(k.x.numel(), k.x.data), "fp8: the largest of ", k.x.shape,
        " needs whole octets that start at 16 bytes");
  if (k.x.numel() == 0) {
    return;
  }
  constexpr unsigned kMostBlocks = 1024;
  const unsigned blocks =
      std::min(num_blocks(k.x.numel(), std::int64_t{kThreads} * kOctet * 4), kMostBlocks);
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    largest_size<<<blocks, kThreads, 0, cuda_stream(stream)>>>(k.x.as<T>(), k.x.numel(),
                                                               k.amax.as<float>());
    check_launch("largest_size");
  });
}

}  // namespace bloomery
