// Kernels of a CUDA stream that are taken to be launched together, as one. One of an abstract
// stream is told of all kernels and launches none.
#pragma once

#include <typeinfo>

namespace bloomery {

// Everything else that the stream is given comes after what was taken: it calls flush() first.
// Until then the memory that the taken kernels use must stay as it is (MemoryPool::hold).
class Collector {
 public:
  virtual ~Collector() = default;
  // Whether it takes this kernel, a struct of that type (launch.h).
  virtual bool take(const std::type_info& type, const void* kernel) = 0;
  // Launches what it took.
  virtual void flush() = 0;
};

}  // namespace bloomery
