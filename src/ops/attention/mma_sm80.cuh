// Tensor-core instructions of sm_80 and newer on 16-bit operands, and the shared-memory tiles they
// read. A warp multiplies A (rows x depth) by B (depth x columns) in pieces of 16 x 8 x 16.
//
// Accumulators of one 16 x 8 piece, per thread with g = lane / 4 and t = lane % 4:
// {(g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)}.
#pragma once

#include "device/warp.cuh"

namespace bloomery::attention_cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory, or zeros when !valid; `from` must be a valid address.
__device__ __forceinline__ void copy_async(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
}

// Four 8 x 8 matrices; lane 8i + r gives the address of row r of matrix i.
__device__ __forceinline__ void load_matrices(std::uint32_t (&m)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&m)[4],
                                                         std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void store_shared(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(address), "r"(word) : "memory");
}

// One 16-bit element.
template <class T>
__device__ __forceinline__ float load_shared(std::uint32_t address) {
  unsigned short bits;
  asm volatile("ld.shared.b16 %0, [%1];\n" : "=h"(bits) : "r"(address) : "memory");
  return to_float(reinterpret_cast<const T&>(bits));
}

template <class T>
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1);
template <>
__device__ __forceinline__ void multiply_add<__nv_bfloat16>(float (&c)[4],
                                                            const std::uint32_t (&a)[4],
                                                            std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void multiply_add<__half>(float (&c)[4], const std::uint32_t (&a)[4],
                                                     std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two values as one word, `low` in the lower half.
template <class T>
__device__ __forceinline__ std::uint32_t pack_pair(float low, float high);
template <>
__device__ __forceinline__ std::uint32_t pack_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}
template <>
__device__ __forceinline__ std::uint32_t pack_pair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

// The same with zero for negative values.
template <class T>
__device__ __forceinline__ std::uint32_t pack_positive(float low, float high);
template <>
__device__ __forceinline__ std::uint32_t pack_positive<__nv_bfloat16>(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
__device__ __forceinline__ std::uint32_t pack_positive<__half>(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// Over the four lanes that hold one row of an accumulator.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFFu, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFFu, x, 2);
}

// A row-major tile of 16-bit elements in shared memory, in units of 16 bytes (eight columns) that
// are permuted within a row so that the eight rows of a matrix load lie in different banks.
// kColumns is a multiple of 32; the tile starts at a multiple of 128 bytes.
template <int kColumns>
struct SharedTile {
  static constexpr int kUnits = kColumns / 8;

  // Byte offset of unit `unit` of row `row`.
  __device__ static __forceinline__ std::uint32_t offset(int row, int unit) {
    // Rows of 128 or 256 bytes all start in bank 0. Rows of 64 or 192 bytes start in bank 0 and 16
    // in turn, so two bits of the row above the lowest choose the place.
    const int place = kColumns % 64 == 0 ? row & 7 : (row >> 1) & 3;
    return static_cast<std::uint32_t>(row * kUnits + (unit ^ place)) * 16;
  }

  std::uint32_t base;  // shared address

  // Address that this lane gives for four matrices: lanes 8i..8i+7 read the rows of matrix i.
  // Matrices 1 and 3 are eight rows (kRowsFirst) or eight columns further, 2 and 3 the other way.
  template <bool kRowsFirst>
  __device__ __forceinline__ std::uint32_t matrices(int row, int column) const {
    const int lane = threadIdx.x % kWarpSize;
    const int first = (lane / 8) & 1, second = lane / 16;
    const int row_step = kRowsFirst ? first : second, unit_step = kRowsFirst ? second : first;
    return base + offset(row + row_step * 8 + lane % 8, column / 8 + unit_step);
  }

  // The fragment of A whose element (i, k) is tile(row + i, column + k).
  __device__ __forceinline__ void load_a(std::uint32_t (&a)[4], int row, int column) const {
    load_matrices(a, matrices<true>(row, column));
  }
  // The fragment of A whose element (i, k) is tile(row + k, column + i).
  __device__ __forceinline__ void load_a_transposed(std::uint32_t (&a)[4], int row,
                                                    int column) const {
    load_matrices_transposed(a, matrices<false>(row, column));
  }
  // Two fragments of B, columns n..n+7 in b[0..1] and n+8..n+15 in b[2..3]:
  // element (k, n) is tile(row + n, column + k).
  __device__ __forceinline__ void load_b(std::uint32_t (&b)[4], int row, int column) const {
    load_matrices(b, matrices<false>(row, column));
  }
  // As above with element (k, n) = tile(row + k, column + n).
  __device__ __forceinline__ void load_b_transposed(std::uint32_t (&b)[4], int row,
                                                    int column) const {
    load_matrices_transposed(b, matrices<true>(row, column));
  }
};

enum class Side { plain, transposed };  // how an operand lies in its tile, see SharedTile

// c += A * B for this warp: 16 * kRows rows, 8 * kColumns columns, kDepth deep. The operands start
// at (a_row, a_column) and (b_row, b_column) of their tiles.
template <class T, int kDepth, Side kA, Side kB, int kRows, int kColumns, class TileA, class TileB>
__device__ __forceinline__ void warp_multiply(float (&c)[kRows][kColumns][4], const TileA& a_tile,
                                              int a_row, int a_column, const TileB& b_tile,
                                              int b_row, int b_column) {
  static_assert(kColumns % 2 == 0 && kDepth % 16 == 0);
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    std::uint32_t a[kRows][4];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if constexpr (kA == Side::plain) {
        a_tile.load_a(a[i], a_row + 16 * i, a_column + k);
      } else {
        a_tile.load_a_transposed(a[i], a_row + k, a_column + 16 * i);
      }
    }
#pragma unroll
    for (int j = 0; j < kColumns; j += 2) {
      std::uint32_t b[4];
      if constexpr (kB == Side::plain) {
        b_tile.load_b(b, b_row + 8 * j, b_column + k);
      } else {
        b_tile.load_b_transposed(b, b_row + k, b_column + 8 * j);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        multiply_add<T>(c[i][j], a[i], b[0], b[1]);
        multiply_add<T>(c[i][j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

template <int kRows, int kColumns>
__device__ __forceinline__ void clear(float (&c)[kRows][kColumns][4]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        c[i][j][e] = 0;
      }
    }
  }
}

}  // namespace bloomery::attention_cuda
