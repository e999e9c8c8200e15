// The functions of cuBLASLt that we call; see cuda_library.h.
#include "ops/matmul/cublaslt_library.h"

#include <cublasLt.h>

#include <cstdint>

#include "device/cuda_library.h"

namespace {

const bloomery::Library& library() {
  static const bloomery::Library library =
      bloomery::open_cuda_library("libcublasLt.so." BLOOMERY_CUDA_MAJOR);
  return library;
}

}  // namespace

void bloomery::open_cublaslt_ahead() { library(); }

#define FORWARD(result, name, parameters, arguments) \
  BLOOMERY_FORWARD(library(), "cuBLASLt", result, name, parameters, arguments)

FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
FORWARD(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), (handle))
FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))
FORWARD(std::size_t, cublasLtGetVersion, (), ())
FORWARD(cublasStatus_t, cublasLtMatmulDescCreate,
        (cublasLtMatmulDesc_t * matmul, cublasComputeType_t compute, cudaDataType_t scale),
        (matmul, compute, scale))
FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t matmul), (matmul))
FORWARD(cublasStatus_t, cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute, const void* value,
         std::size_t bytes),
        (matmul, attribute, value, bytes))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference),
        (preference))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference),
        (preference))
FORWARD(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const void* value, std::size_t bytes),
        (preference, attribute, value, bytes))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutCreate,
        (cublasLtMatrixLayout_t * layout, cudaDataType type, std::uint64_t rows,
         std::uint64_t columns, std::int64_t stride),
        (layout, type, rows, columns, stride))
FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
FORWARD(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
         cublasLtMatmulPreference_t preference, int wanted,
         cublasLtMatmulHeuristicResult_t results[], int* found),
        (handle, matmul, a, b, c, d, preference, wanted, results, found))
FORWARD(cublasStatus_t, cublasLtMatmulAlgoCheck,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
         const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result),
        (handle, matmul, a, b, c, d, algorithm, result))
FORWARD(cublasStatus_t, cublasLtMatmul,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, const void* alpha, const void* a,
         cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
         const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
         cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
         std::size_t workspace_bytes, cudaStream_t stream),
        (handle, matmul, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm,
         workspace, workspace_bytes, stream))
