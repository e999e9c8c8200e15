// Memory of one stream that another stream still uses. A pool hands a block out again as soon as it
// comes back, in the order of its own stream alone, so whoever gives a tensor to another stream
// keeps it here until that stream has come past its use.
#pragma once

#include <deque>
#include <memory>

#include "tensor/tensor.h"

namespace bloomery {

class CrossStreamRefs {
 public:
  // `owner`: whose pool the memory is of. The streams that use the memory must end before this
  // does.
  explicit CrossStreamRefs(Stream& owner) : owner_(&owner) {}
  CrossStreamRefs(const CrossStreamRefs&) = delete;
  CrossStreamRefs& operator=(const CrossStreamRefs&) = delete;

  // Of many kept tensors the owner waits for the oldest (on the device, not the host), so that they
  // do not pile up when it runs ahead.
  void keep_until(Tensor tensor, std::shared_ptr<Event> done);
  void wait();  // the owner waits for all, and all are let go

 private:
  void let_go();

  struct Kept {
    Tensor tensor;
    std::shared_ptr<Event> done;
  };
  Stream* owner_;
  std::deque<Kept> kept_;
};

}  // namespace bloomery
