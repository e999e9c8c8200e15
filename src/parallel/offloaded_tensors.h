// Tensors of the computation that wait for their next use, on the device or in host memory. Copies
// run beside the computation, and tensors come back ahead of their use where the caller asks for
// it.
#pragma once

#include <memory>
#include <vector>

#include "tensor/cross_stream_refs.h"

namespace bloomery {

// Memory of the host in which tensors wait. What was once taken stays, for those that come later:
// copies to and from it are ordered by `copies` alone, so nobody else may get it.
class OffloadPool {
 public:
  // All must outlive it, and `copies` must end before it does.
  OffloadPool(Stream& compute, Stream& host, Stream& copies)
      : compute_(compute), host_(host), copies_(copies), leaving_(compute) {}

  Tensor take(DType dtype, const Shape& shape);
  void give_back(Tensor tensor) { free_.push_back(std::move(tensor)); }

  void leave(const Tensor& from, const Tensor& to);                   // to the host
  std::shared_ptr<Event> come(const Tensor& from, const Tensor& to);  // and back

 private:
  Stream &compute_, &host_, &copies_;
  CrossStreamRefs leaving_;
  std::vector<Tensor> free_;
};

class OffloadedTensors {
 public:
  // Without a shelf they stay where they are.
  OffloadedTensors(Stream& compute, OffloadPool* offload_pool, std::int64_t count)
      : compute_(compute), offload_pool_(offload_pool), all_(static_cast<std::size_t>(count)) {}
  ~OffloadedTensors();
  OffloadedTensors(const OffloadedTensors&) = delete;
  OffloadedTensors& operator=(const OffloadedTensors&) = delete;

  // The tensor is not to be written to until it is got again.
  void put(std::int64_t index, Tensor tensor);
  bool has(std::int64_t index) const { return static_cast<bool>(at(index).waits); }
  void fetch(std::int64_t index);  // starts; nothing where none waits or it is here
  Tensor get(std::int64_t index);  // for what the computation does next; it waits on

 private:
  struct Each {
    Tensor waits, here;  // the second on its way or arrived
    std::shared_ptr<Event> arrived;
  };
  Each& at(std::int64_t index) { return all_.at(static_cast<std::size_t>(index)); }
  const Each& at(std::int64_t index) const { return all_.at(static_cast<std::size_t>(index)); }

  Stream& compute_;
  OffloadPool* offload_pool_;
  std::vector<Each> all_;
};

}  // namespace bloomery
