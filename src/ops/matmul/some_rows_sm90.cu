// How products of some rows are divided among blocks, and their launch.
#include "ops/attention/tensor_map_sm90.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/matmul/some_rows.h"
#include "ops/matmul/some_rows_sm90.cuh"

namespace bloomery {
namespace {

using some_rows::Problem;

constexpr std::int64_t kFewest = 5;  // rows; of fewer few_rows_cuda.cu is faster
// From so many columns on, blocks come in several waves, and the library wins with many rows.
constexpr std::int64_t kManyColumns = 65536, kManyRows = 32;

// Rows of b in half a tile, and blocks that divide k.
struct Division {
  int half_rows, splits;
};

// Tiles of 64 rows, whose k is divided until blocks are about as many as run at a time (clusters
// leave some places empty); where there are more tiles, as high ones as make them run at a time.
Division divide(std::int64_t columns, bool gated, int steps, int processors) {
  constexpr int kFewestSteps = 3, kMostHalfRows = 96;
  const int of_tile = gated ? 1 : 2, most = 2 * processors, most_in_clusters = most * 17 / 20;
  const auto rows_of = [&](std::int64_t tiles) {
    return static_cast<int>((columns + tiles * of_tile - 1) / (tiles * of_tile) + 7) / 8 * 8;
  };
  Division d{.half_rows = 32, .splits = 1};
  const auto tiles = static_cast<int>((columns + 32 * of_tile - 1) / (32 * of_tile));
  if (tiles > most_in_clusters) {
    d.half_rows = std::clamp(rows_of(most), 32, kMostHalfRows);
    return d;
  }
  for (const int splits : {2, 3, 4, some_rows::kMostSplits}) {
    if (tiles * splits <= most_in_clusters && steps >= splits * kFewestSteps) {
      d.splits = splits;
    }
  }
  return d;
}

CUtensorMap map_matrix(const ConstView& matrix, std::int64_t rows, std::int64_t columns,
                       int box_rows) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[] = {some_rows::kStep, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result = attention_cuda::tensor_map_encoder()(
      &map,
      matrix.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      2, const_cast<void*>(matrix.data), sizes, stride, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(result == CUDA_SUCCESS, "matmul: no tensor map for a matrix ", rows, "x", columns,
        ": CUDA error ", static_cast<int>(result));
  return map;
}

template <class L, class T>
void launch_layout(Stream& stream, const Matmul& k, const Division& division, Problem p) {
  const std::int64_t columns = p.gated ? p.n / 2 : p.n;
  const std::int64_t of_tile = division.half_rows * (p.gated ? 1 : 2);
  p.a = map_matrix(k.a, p.rows, k.a.numel() / p.rows, L::kRows);
  p.b = map_matrix(k.b, p.n, k.b.numel() / p.n, division.half_rows);
  p.half_rows = division.half_rows;
  p.stages = L::stages(division.half_rows);
  const auto splits = static_cast<unsigned>(division.splits);
  launch_kernel(stream, some_rows::product<L, T>,
                Blocks{.grid = dim3(splits, num_blocks(columns, of_tile)),
                       .threads = L::kThreads,
                       .shared_bytes = L::kBytes,
                       .cluster = dim3(splits, 1, 1)},
                p);
}

template <int kRows, class T>
void launch_rows(Stream& stream, const Matmul& k, const Division& division, const Problem& p) {
  if (division.half_rows <= 32) {
    launch_layout<some_rows::Layout<kRows, 1>, T>(stream, k, division, p);
  } else if (division.half_rows <= 64) {
    launch_layout<some_rows::Layout<kRows, 2>, T>(stream, k, division, p);
  } else {
    launch_layout<some_rows::Layout<kRows, 3>, T>(stream, k, division, p);
  }
}

template <class T>
void launch_type(Stream& stream, const Matmul& k, const Division& division, const Problem& p) {
  if (p.rows <= 16) {
    launch_rows<16, T>(stream, k, division, p);
  } else if (p.rows <= 32) {
    launch_rows<32, T>(stream, k, division, p);
  } else {
    launch_rows<kSomeRows, T>(stream, k, division, p);
  }
}

void multiply(Stream& stream, const Matmul& k, const MatmulSizes& sizes, const GatedForward* gate) {
  Problem p{};
  p.bias = k.bias.data;
  p.d = gate != nullptr ? gate->y.data : k.d.data;
  p.rows = static_cast<int>(sizes.m);
  p.n = static_cast<int>(sizes.n);
  p.steps = static_cast<int>((sizes.k + some_rows::kStep - 1) / some_rows::kStep);
  p.gated = gate != nullptr;
  p.fp32 = k.d.dtype == DType::fp32;
  p.b_lasts = k.b_lasts;
  p.activation = gate != nullptr ? gate->activation : k.activation;
  const Division division =
      divide(p.gated ? sizes.n / 2 : sizes.n, p.gated, p.steps, num_sm90_processors(stream));
  if (k.a.dtype == DType::bf16) {
    launch_type<__nv_bfloat16>(stream, k, division, p);
  } else {
    launch_type<__half>(stream, k, division, p);
  }
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

bool applies(Stream& stream, const Matmul& k, const MatmulSizes& sizes) {
  return sizes.m >= kFewest && sizes.m <= kSomeRows && sizes.n > 0 && sizes.k > 0 &&
         sizes.n <= INT32_MAX && sizes.k <= INT32_MAX && sizes.n % 16 == 0 && sizes.k % 8 == 0 &&
         (sizes.n < kManyColumns || sizes.m <= kManyRows) && size_of(k.a.dtype) == 2 && !k.a_code &&
         !k.transpose_a && k.transpose_b && !k.add && !k.before &&
         k.derivative == Activation::none && aligned(k.a.data) && aligned(k.b.data) &&
         aligned(k.d.data) && aligned(k.bias.data) && num_sm90_processors(stream) > 0;
}

}  // namespace

bool multiply_some_rows(Stream& stream, const Matmul& k, const MatmulSizes& sizes) {
  const bool does = applies(stream, k, sizes);
  if (does) {
    multiply(stream, k, sizes, nullptr);
  }
  return does;
}

bool may_be_gated(Stream& stream, const Matmul& k) {
  return k.activation == Activation::none && k.d.dtype == k.a.dtype &&
         applies(stream, k, checked_sizes(k));
}

void multiply_gated(Stream& stream, const Matmul& k, const GatedForward& gate) {
  multiply(stream, k, checked_sizes(k), &gate);
}

}  // namespace bloomery
