// oneDNN, found at run time: versions 2 and 3 have different interfaces for the same few calls,
// and a machine may have neither.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/stream.h"
#include "ops/matmul/product_shape.h"

namespace bloomery {

class OneDnn {
 public:
  // Null when the library is not installed or would use threads of its own.
  static std::unique_ptr<OneDnn> load();
  ~OneDnn();

  // One product on the calling thread. False, and nothing done, when the library has no fast
  // implementation. May be called from several threads. Inputs are fp32 or bf16.
  bool multiply(Stream& stream, const ProductShape& shape, const void* a, const void* b, void* c);

  std::string version() const;  // "2.6.3"

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
