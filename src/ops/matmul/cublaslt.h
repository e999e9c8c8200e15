// cuBLASLt for row-major products. Only files that are built with CUDA include this.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "ops/matmul/choices.h"
#include "ops/matmul/matmul.h"

namespace bloomery {

// Library handle and plans by shape. A service of a CUDA device.
class CublasLt {
 public:
  explicit CublasLt(Device& device);

  // Runs the product on the stream with its epilogue in the kernel. False, and nothing done, when
  // the library has no deterministic kernel for it. m, n and k are positive.
  bool multiply(Stream& stream, const Matmul& matmul, const MatmulSizes& sizes,
                cublasLtEpilogue_t epilogue);

 private:
  struct Destroy {
    void operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }
    void operator()(cublasLtMatmulDesc_t description) const {
      cublasLtMatmulDescDestroy(description);
    }
    void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
    void operator()(cublasLtMatmulPreference_t preference) const {
      cublasLtMatmulPreferenceDestroy(preference);
    }
  };
  template <class Pointer>
  using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace_bytes = 0;
  };
  // The library is column-major: it computes d^T = op(b)^T op(a)^T, so its A is our b.
  struct Plan {
    Owned<cublasLtMatmulDesc_t> description;
    Owned<cublasLtMatrixLayout_t> a, b, d;
    bool usable = false;
    Algorithm choice;
  };

  Plan make_plan(Stream& stream, const MatmulKey& key, const Matmul& matmul);
  void describe(Plan& plan, const MatmulKey& key, const Matmul& matmul) const;
  std::vector<Algorithm> candidates(const Plan& plan, const MatmulKey& key, int count) const;
  bool stored(const Plan& plan, const MatmulKey& key, Algorithm& choice);
  Algorithm fastest(Stream& stream, const Plan& plan, const std::vector<Algorithm>& candidates,
                    const Matmul& matmul) const;
  cublasStatus_t execute(Stream& stream, const Plan& plan, const Algorithm& choice,
                         const Matmul& matmul, void* d) const;

  Device& device_;
  MatmulChoices& choices_;
  Owned<cublasLtHandle_t> handle_;
  std::map<MatmulKey, Plan> plans_;
};

}  // namespace bloomery
