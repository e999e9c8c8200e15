// oneDNN, found at run time: versions 2 and 3 have different interfaces for the same few calls,
// and a machine may have neither.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <mutex>

#include "device/stream.h"
#include "tensor/dtype.h"

namespace bloomery {

// A product of one library call: c [m, n] (+)= op(a) op(b). Leading dimensions count elements
// of the matrices as stored.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false, add = false;
  DType input = DType::fp32;
  DType output = DType::fp32;  // of c; bf16 only with oneDNN, bf16 inputs and no add

  auto operator<=>(const ProductShape&) const = default;
};

class OneDnn {
 public:
  // Null when the library is not installed or would use threads of its own.
  static std::unique_ptr<OneDnn> load();
  ~OneDnn();

  // One product on the calling thread. False, and nothing done, when the library has no fast
  // implementation. May be called from several threads. Inputs are fp32 or bf16.
  bool multiply(Stream& stream, const ProductShape& shape, const void* a, const void* b, void* c);

 private:
  struct Api;
  struct Primitive;
  explicit OneDnn(std::unique_ptr<Api> api);
  const Primitive* primitive(const ProductShape& shape);
  std::unique_ptr<Primitive> make_primitive(const ProductShape& shape) const;

  std::unique_ptr<Api> api_;
  void* engine_ = nullptr;
  std::mutex mutex_;
  std::map<ProductShape, std::unique_ptr<Primitive>> primitives_;
};

}  // namespace bloomery
