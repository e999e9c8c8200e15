// Communication that runs beside computation, on a stream of its own if there is one. The memory
// that it touches belongs to the compute stream, which must wait() before anybody else uses it.
#pragma once

#include <functional>
#include <optional>

#include "device/stream.h"

namespace bloomery {

class AsyncCollective {
 public:
  explicit AsyncCollective(Stream* communication) : communication_(communication) {}

  // Starts when `compute` has done everything so far.
  void start(Stream& compute, const std::function<void(Stream&)>& call) {
    if (communication_ == nullptr) {
      return call(compute);
    }
    Event before(compute.device());
    before.record(compute);
    communication_->wait(before);
    call(*communication_);
    done_.emplace(compute.device());
    done_->record(*communication_);
  }
  void wait(Stream& compute) {
    if (done_) {
      compute.wait(*done_);
    }
  }

 private:
  Stream* communication_;
  std::optional<Event> done_;
};

}  // namespace bloomery
