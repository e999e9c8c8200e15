// The kernel that casts a matrix to 8 bits, by rows and transposed, in one pass.
//
// A block takes a tile of 128 x 128 numbers. A thread reads pieces of four rows by eight columns,
// in 16-byte accesses; a warp reads 64 bytes of each of its 32 rows. Transposed, the four bytes of
// a column in a piece are a word of shared memory; the stride between columns makes both sides free
// of bank conflicts. Columns of the tile leave in 16-byte accesses, 128 bytes each.
#pragma once

#include <cuda_fp8.h>

#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/common/octet.cuh"
#include "ops/fp8/quantize.h"

namespace bloomery::fp8 {

constexpr int kThreads = 256, kTile = 128, kPieceRows = 4;
constexpr int kWordsPerColumn = kTile / kPieceRows, kStride = kWordsPerColumn + 1;
constexpr int kPieceColumns = kTile / kOctet;  // of the tile, in pieces
constexpr int kPieces = kWordsPerColumn * kPieceColumns / kThreads;
constexpr int kUnitColumns = kPieceColumns / 4;  // a warp's pieces: four beside each other ...
constexpr int kUnitRows = kWordsPerColumn / 8;   // ... of eight groups of rows
static_assert(kTile == kColumnSumRows);

// What is cast: x, activation(x), or x times the activation's derivative at another matrix.
enum class Source { plain, activated, derivative };

// An infinity becomes NaN, which the conversion keeps.
__device__ __forceinline__ float scaled(float x, float scale) {
  return isinf(x) ? __int_as_float(0x7FC00000) : x * scale;
}

template <Fp8Format kFormat>
__device__ __forceinline__ std::uint32_t encode_four(const float* x, float scale) {
  constexpr auto kKind = kFormat == Fp8Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
  const std::uint32_t low =
      __nv_cvt_float2_to_fp8x2({scaled(x[0], scale), scaled(x[1], scale)}, __NV_SATFINITE, kKind);
  const std::uint32_t high =
      __nv_cvt_float2_to_fp8x2({scaled(x[2], scale), scaled(x[3], scale)}, __NV_SATFINITE, kKind);
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

// By all threads of a block.
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

struct Arguments {
  std::int64_t rows, columns;
  const void *x, *derivative_at;
  const float* scale;
  std::uint8_t *by_rows, *transposed;
  float *amax, *column_sums;
};

// What a piece leaves in registers.
struct Piece {
  std::uint32_t words[2][kPieceRows];  // bytes of the left and the right four columns
  float sums[kOctet];                  // of its columns
  int bits;                            // the largest size
};

template <Fp8Format kFormat, Source kSource, Activation kActivation, class T>
__device__ __forceinline__ void cast_piece(const Arguments& p, std::int64_t at, float scale,
                                           Piece& piece) {
  Octet<T> in[kPieceRows], points[kPieceRows];
#pragma unroll
  for (int r = 0; r < kPieceRows; ++r) {
    in[r] = load_octet(static_cast<const T*>(p.x) + at + r * p.columns);
    if constexpr (kSource == Source::derivative) {
      points[r] = load_octet(static_cast<const T*>(p.derivative_at) + at + r * p.columns);
    }
  }
#pragma unroll
  for (int r = 0; r < kPieceRows; ++r) {
    float numbers[kOctet];
#pragma unroll
    for (int i = 0; i < kOctet; ++i) {
      float x = in[r][i];
      if constexpr (kSource == Source::derivative) {
        x *= activation_derivative<kActivation, kAccuracyFor<T>>(points[r][i]);
      } else if constexpr (kSource == Source::activated) {
        x = activate<kActivation, kAccuracyFor<T>>(x);
      }
      numbers[i] = x;
      piece.sums[i] += x;
      piece.bits = max(piece.bits, size_bits(x));
    }
    piece.words[0][r] = encode_four<kFormat>(numbers, scale);
    piece.words[1][r] = encode_four<kFormat>(numbers + 4, scale);
  }
}

// The columns of a tile, from shared memory to their rows of the transposed matrix.
__device__ __forceinline__ void store_columns(const std::uint32_t* tile, const Arguments& p,
                                              std::int64_t first_row, std::int64_t first_column) {
  constexpr int kPacks = kWordsPerColumn / 4;  // of 16 bytes in a column
  for (int i = threadIdx.x; i < kTile * kPacks; i += kThreads) {
    const int column = i / kPacks, pack = i % kPacks;
    const std::int64_t row = first_row + pack * 16;
    if (first_column + column < p.columns && row < p.rows) {
      Pack<std::uint32_t, 4> out;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        out[j] = tile[column * kStride + pack * 4 + j];
      }
      std::uint8_t* const to = p.transposed + (first_column + column) * p.rows + row;
      store_pack(reinterpret_cast<std::uint32_t*>(to), out);
    }
  }
}

// Adds a piece's sums over the rows of its warp, in a fixed order.
__device__ __forceinline__ void sum_rows(const Piece& piece, float* to) {
#pragma unroll
  for (int i = 0; i < kOctet; ++i) {
    float sum = piece.sums[i];
#pragma unroll
    for (int offset = 4; offset < kWarpSize; offset *= 2) {
      sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    }
    if (threadIdx.x % kWarpSize < 4) {
      to[i] = sum;
    }
  }
}

template <Fp8Format kFormat, Source kSource, Activation kActivation, bool kRows, bool kTransposed,
          class T>
__global__ void __launch_bounds__(kThreads) quantize(Arguments p) {
  __shared__ std::uint32_t tile[kTransposed ? kTile * kStride : 1];
  __shared__ float sums[kUnitRows][kTile];
  const float scale = *p.scale;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  int bits = 0;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int unit = warp * kPieces + i;
    const int column = (unit % kUnitColumns * 4 + lane % 4) * kOctet;  // in the tile
    const int row_word = unit / kUnitColumns * 8 + lane / 4;
    const std::int64_t row = first_row + row_word * kPieceRows;
    const std::int64_t at = row * p.columns + first_column + column;
    const bool inside = row < p.rows && first_column + column < p.columns;
    Piece piece{};
    if (inside) {
      cast_piece<kFormat, kSource, kActivation, T>(p, at, scale, piece);
      bits = max(bits, piece.bits);
    }
#pragma unroll
    for (int r = 0; kRows && r < kPieceRows; ++r) {
      if (inside) {
        store_pack(reinterpret_cast<std::uint32_t*>(p.by_rows + at + r * p.columns),
                   Pack<std::uint32_t, 2>{piece.words[0][r], piece.words[1][r]});
      }
    }
    if (p.column_sums != nullptr) {
      sum_rows(piece, sums[unit / kUnitColumns] + column);
    }
#pragma unroll
    for (int half = 0; kTransposed && half < 2; ++half) {
      transpose_bytes(piece.words[half]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        tile[(column + half * 4 + j) * kStride + row_word] = piece.words[half][j];
      }
    }
  }
  if (p.amax != nullptr) {
    raise_amax(p.amax, bits);
  }
  __syncthreads();
  if (p.column_sums != nullptr && threadIdx.x < kTile && first_column + threadIdx.x < p.columns) {
    float sum = 0;
#pragma unroll
    for (int u = 0; u < kUnitRows; ++u) {
      sum += sums[u][threadIdx.x];
    }
    p.column_sums[blockIdx.y * p.columns + first_column + threadIdx.x] = sum;
  }
  if constexpr (kTransposed) {
    store_columns(tile, p, first_row, first_column);
  }
}

template <Fp8Format kFormat, Source kSource, Activation kActivation, bool kRows, bool kTransposed,
          class T>
void launch_quantize(Stream& stream, const Quantize& k) {
  const Arguments arguments{.rows = k.x.rows(),
                            .columns = k.x.columns(),
                            .x = k.x.data,
                            .derivative_at = k.derivative_at.data,
                            .scale = k.scale.as<float>(),
                            .by_rows = k.rows.as<std::uint8_t>(),
                            .transposed = k.transposed.as<std::uint8_t>(),
                            .amax = k.amax.as<float>(),
                            .column_sums = k.column_sums.as<float>()};
  const dim3 grid(num_blocks(arguments.columns, kTile), num_blocks(arguments.rows, kTile));
  quantize<kFormat, kSource, kActivation, kRows, kTransposed, T>
      <<<grid, kThreads, 0, cuda_stream(stream)>>>(arguments);
  check_launch("quantize");
}

// With the copies that are wanted.
template <Fp8Format kFormat, Source kSource, Activation kActivation, class T>
void launch_copies(Stream& stream, const Quantize& k) {
  if (k.rows && k.transposed) {
    launch_quantize<kFormat, kSource, kActivation, true, true, T>(stream, k);
  } else if (k.transposed) {
    launch_quantize<kFormat, kSource, kActivation, false, true, T>(stream, k);
  } else {
    launch_quantize<kFormat, kSource, kActivation, true, false, T>(stream, k);
  }
}

// quantize_activation_cuda.cu: the numbers are those of an activation.
void quantize_activation(Stream& stream, const Quantize& k);

}  // namespace bloomery::fp8
