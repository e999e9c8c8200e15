#include "ops/attention/tensor_map_sm90.h"

#include <cuda_runtime_api.h>

#include "device/cuda_check.h"

namespace bloomery::attention_cuda {
namespace {

auto encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &result),
             "cudaGetDriverEntryPointByVersion");
  check(result == cudaDriverEntryPointSuccess,
        "the driver has no tensor maps; CUDA 12 or newer is needed");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  static const auto encode = encode_function();
  return encode;
}

bool sm90_applies(Stream& stream, const AttentionProblem& problem) {
  int major = 0, minor = 0;
  const int device = stream.device().options().index;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "cudaDeviceGetAttribute");
  return major == 9 && minor == 0 && problem.query_length > 0 && problem.key_length > 0;
}

CUtensorMap map_heads(const AttentionProblem& problem, const HeadsToMap& heads) {
  const auto encode = tensor_map_encoder();
  const auto bytes = [](std::int64_t elements) { return static_cast<cuuint64_t>(elements) * 2; };
  const cuuint64_t sizes[] = {
      static_cast<cuuint64_t>(problem.head_dim), static_cast<cuuint64_t>(heads.length),
      static_cast<cuuint64_t>(heads.heads_per_group), static_cast<cuuint64_t>(problem.num_groups),
      static_cast<cuuint64_t>(problem.num_sequences)};
  const cuuint64_t strides[] = {bytes(heads.view.token_stride), bytes(problem.head_dim),
                                bytes(heads.view.group_stride),
                                bytes(heads.length * heads.view.token_stride)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(heads.box_columns),
                            static_cast<cuuint32_t>(heads.box_rows), 1, 1, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map,
             problem.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
             5, heads.view.data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             heads.box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(result == CUDA_SUCCESS, "attention: no tensor map for heads of ", problem.head_dim,
        " with token stride ", heads.view.token_stride, " and group stride ",
        heads.view.group_stride, ": CUDA error ", static_cast<int>(result));
  return map;
}

}  // namespace bloomery::attention_cuda
