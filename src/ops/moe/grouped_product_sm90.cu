#include <initializer_list>

#include "device/cuda_check.h"
#include "ops/activation/activation.h"
#include "ops/attention/tensor_map_sm90.h"
#include "ops/moe/grouped_product_sm90.cuh"

namespace bloomery {
namespace {

using namespace moe_cuda;

int attribute(const Stream& stream, cudaDeviceAttr which) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, stream.device().options().index),
             "cudaDeviceGetAttribute");
  return value;
}

// 16-bit rows whose length and addresses are multiples of 16 bytes, on the one architecture.
bool applies(const Stream& stream, DType dtype, std::initializer_list<std::int64_t> extents,
             std::initializer_list<const void*> pointers) {
  bool good = (dtype == DType::bf16 || dtype == DType::fp16) &&
              attribute(stream, cudaDevAttrComputeCapabilityMajor) == 9 &&
              attribute(stream, cudaDevAttrComputeCapabilityMinor) == 0;
  for (const std::int64_t extent : extents) {
    good = good && extent % 8 == 0 && extent > 0;
  }
  for (const void* pointer : pointers) {
    good = good && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  }
  return good;
}

// A matrix [rows, columns], read in boxes of box_rows x 64.
CUtensorMap map_matrix(const ConstView& view, std::int64_t rows, std::int64_t columns,
                       int box_rows) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(columns) * 2};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result = attention_cuda::tensor_map_encoder()(
      &map,
      view.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
      2, const_cast<void*>(view.data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(result == CUDA_SUCCESS, "grouped product: no tensor map for a matrix ", rows, " x ",
        columns, ": CUDA error ", static_cast<int>(result));
  return map;
}

template <class Arguments>
void launch_tiles(Stream& stream, void (*kernel)(Arguments), std::int64_t tiles,
                  const Arguments& arguments, const char* name) {
  if (tiles == 0) {
    return;
  }
  check_cuda(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
      "cudaFuncSetAttribute");
  const std::int64_t processors = attribute(stream, cudaDevAttrMultiProcessorCount);
  const auto blocks = static_cast<unsigned>(tiles < processors ? tiles : processors);
  kernel<<<blocks, kThreads, kSharedBytes, cuda_stream(stream)>>>(arguments);
  check_launch(name);
}

std::int64_t tiles_of(std::int64_t extent, int tile) { return (extent + tile - 1) / tile; }

}  // namespace

// The common activation is part of the kernel; others are applied by a pass of their own.
bool grouped_run_sm90(Stream& stream, const GroupedProduct& k) {
  const bool known = k.transpose_b ? k.derivative == Activation::none
                                   : k.activation == Activation::none && !k.bias;
  if (!known ||
      !applies(stream, k.a.dtype, {k.n, k.k},
               {k.a.data, k.b.data, k.d.data, k.bias.data, k.before.data, k.derivative_at.data})) {
    return false;
  }
  constexpr Activation kFused = Activation::gelu_tanh, kNone = Activation::none;
  const bool later = k.activation != kNone && k.activation != kFused;
  const bool later_derivative = k.derivative != kNone && k.derivative != kFused;
  GroupedProduct product = k;
  product.d = later && k.before ? k.before : k.d;
  const std::int64_t groups = k.groups.offsets.numel() - 1, rows = k.a.rows();
  const auto run_with = [&]<class T>() {
    const ProductArguments<T> arguments{.p = ProductOnDevice<T>(product),
                                        .a = map_matrix(k.a, rows, k.k, kRows),
                                        .b = k.transpose_b
                                                 ? map_matrix(k.b, groups * k.n, k.k, kColumns)
                                                 : map_matrix(k.b, groups * k.k, k.n, kDepth)};
    const auto forward = k.activation == kFused
                             ? grouped_product_90<T, Operand::along_rows, kFused, kNone>
                             : grouped_product_90<T, Operand::along_rows, kNone, kNone>;
    const auto backward = k.derivative == kFused
                              ? grouped_product_90<T, Operand::down_rows, kNone, kFused>
                              : grouped_product_90<T, Operand::down_rows, kNone, kNone>;
    launch_tiles(stream, k.transpose_b ? forward : backward, rows / kRows * tiles_of(k.n, kColumns),
                 arguments, "grouped_product_90");
  };
  k.a.dtype == DType::bf16 ? run_with.template operator()<__nv_bfloat16>()
                           : run_with.template operator()<__half>();
  if (later) {
    run(OnCuda{}, stream, ActivationForward{.x = product.d, .y = k.d, .activation = k.activation});
  }
  if (later_derivative) {
    run(OnCuda{}, stream,
        ActivationBackward{
            .grad_y = k.d, .x = k.derivative_at, .grad_x = k.d, .activation = k.derivative});
  }
  return true;
}

bool grouped_run_sm90(Stream& stream, const GroupedWeightGradient& k) {
  const std::int64_t m = k.a.columns(), n = k.b.columns(), rows = k.a.rows();
  if (!applies(stream, k.a.dtype, {m, n}, {k.a.data, k.b.data, k.d.data})) {
    return false;
  }
  const std::int64_t tiles =
      (k.groups.offsets.numel() - 1) * tiles_of(m, kRows) * tiles_of(n, kColumns);
  const auto run_with = [&]<class T>() {
    const GradientArguments<T> arguments{.p = GradientOnDevice<T>(k),
                                         .a = map_matrix(k.a, rows, m, kDepth),
                                         .b = map_matrix(k.b, rows, n, kDepth)};
    launch_tiles(stream, grouped_weight_gradient_90<T>, tiles, arguments,
                 "grouped_weight_gradient_90");
  };
  k.a.dtype == DType::bf16 ? run_with.template operator()<__nv_bfloat16>()
                           : run_with.template operator()<__half>();
  return true;
}

}  // namespace bloomery
