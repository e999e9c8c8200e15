#include "ops/matmul/openblas.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace bloomery {
namespace {

template <class Function>
bool resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<OpenBlas> OpenBlas::load() {
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      continue;
    }
    std::unique_ptr<OpenBlas> result(new OpenBlas);
    void (*set_num_threads)(int) = nullptr;
    const char* (*configuration)() = nullptr;
    if (!resolve(library, "cblas_sgemm", result->single_) ||
        !resolve(library, "cblas_dgemm", result->double_) ||
        !resolve(library, "openblas_set_num_threads", set_num_threads) ||
        !resolve(library, "openblas_get_config", configuration)) {
      continue;
    }
    result->description_ = configuration();
    if (result->description_.find("USE64BITINT") == std::string::npos) {
      set_num_threads(1);
      return result;
    }
  }
  return nullptr;
}

template <class Real>
void OpenBlas::call(Gemm<Real>* gemm, const ProductShape& s, const Real* a, const Real* b,
                    Real* c) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  check(std::max({s.m, s.n, s.k, s.lda, s.ldb, s.ldc}) <= std::numeric_limits<int>::max(),
        "matmul: a ", s.m, "x", s.n, "x", s.k, " product is too large for OpenBLAS");
  gemm(kRowMajor, s.transpose_a ? kTransposed : kPlain, s.transpose_b ? kTransposed : kPlain,
       static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k), Real(1), a,
       static_cast<int>(s.lda), b, static_cast<int>(s.ldb), s.add ? Real(1) : Real(0), c,
       static_cast<int>(s.ldc));
}

void OpenBlas::multiply(const ProductShape& shape, const float* a, const float* b, float* c) const {
  call(single_, shape, a, b, c);
}

void OpenBlas::multiply(const ProductShape& shape, const double* a, const double* b,
                        double* c) const {
  call(double_, shape, a, b, c);
}

}  // namespace bloomery
