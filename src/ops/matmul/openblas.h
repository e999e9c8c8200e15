// OpenBLAS, found at run time: its kernels for every processor are larger than this program, and a
// machine may not have it.
#pragma once

#include <memory>
#include <string>

#include "ops/matmul/product_shape.h"

namespace bloomery {

class OpenBlas {
 public:
  // Null when the library is not installed or counts in 64 bits.
  static std::unique_ptr<OpenBlas> load();

  // One product on the calling thread. May be called from several threads.
  void multiply(const ProductShape& shape, const float* a, const float* b, float* c) const;
  void multiply(const ProductShape& shape, const double* a, const double* b, double* c) const;

  // As the library describes itself: "OpenBLAS 0.3.21 ... Zen MAX_THREADS=64".
  const std::string& description() const { return description_; }

 private:
  OpenBlas() = default;

  // Numbers of the CBLAS interface: order and transposition of matrices.
  template <class Real>
  using Gemm = void(int order, int transpose_a, int transpose_b, int m, int n, int k, Real alpha,
                    const Real* a, int lda, const Real* b, int ldb, Real beta, Real* c, int ldc);
  template <class Real>
  static void call(Gemm<Real>* gemm, const ProductShape& shape, const Real* a, const Real* b,
                   Real* c);

  Gemm<float>* single_ = nullptr;
  Gemm<double>* double_ = nullptr;
  std::string description_;
};

}  // namespace bloomery
