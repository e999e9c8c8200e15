#include "parallel/offloaded_tensors.h"

#include <algorithm>
#include <utility>

#include "device/recorded.h"

namespace bloomery {

Tensor OffloadPool::take(DType dtype, const Shape& shape) {
  const auto found = std::ranges::find_if(free_, [&](const Tensor& tensor) {
    return tensor.dtype() == dtype && tensor.shape() == shape;
  });
  if (found == free_.end()) {
    return Tensor::empty(host_, dtype, shape);
  }
  Tensor tensor = std::move(*found);
  free_.erase(found);
  return tensor;
}

void OffloadPool::leave(const Tensor& from, const Tensor& to) {
  copies_.wait(*recorded(compute_));
  copies_.copy(to.data(), from.data(), from.bytes());
  leaving_.keep_until(from, recorded(copies_));
}

// The copy comes after whatever used the memory before: the computation has been given it.
std::shared_ptr<Event> OffloadPool::come(const Tensor& from, const Tensor& to) {
  copies_.wait(*recorded(compute_));
  copies_.copy(to.data(), from.data(), from.bytes());
  return recorded(copies_);
}

// What is on its way to the device must arrive before its memory is used again.
OffloadedTensors::~OffloadedTensors() {
  for (Each& each : all_) {
    if (each.arrived) {
      compute_.wait(*each.arrived);
    }
    if (offload_pool_ != nullptr && each.waits) {
      offload_pool_->give_back(std::move(each.waits));
    }
  }
}

void OffloadedTensors::put(std::int64_t index, Tensor tensor) {
  Each& each = at(index);
  if (offload_pool_ == nullptr) {
    each.waits = std::move(tensor);
    return;
  }
  if (!each.waits) {
    each.waits = offload_pool_->take(tensor.dtype(), tensor.shape());
  }
  offload_pool_->leave(tensor, each.waits);
}

void OffloadedTensors::fetch(std::int64_t index) {
  Each& each = at(index);
  if (offload_pool_ == nullptr || !each.waits || each.here) {
    return;
  }
  each.here = Tensor::empty(compute_, each.waits.dtype(), each.waits.shape());
  each.arrived = offload_pool_->come(each.waits, each.here);
}

Tensor OffloadedTensors::get(std::int64_t index) {
  Each& each = at(index);
  if (offload_pool_ == nullptr) {
    return each.waits;
  }
  fetch(index);
  compute_.wait(*std::exchange(each.arrived, {}));
  return std::exchange(each.here, {});
}

}  // namespace bloomery
