#include "tensor/cross_stream_refs.h"

namespace bloomery {
namespace {

constexpr std::size_t kMost = 4;

}  // namespace

void CrossStreamRefs::let_go() {
  owner_->wait(*kept_.front().done);
  kept_.pop_front();
}

void CrossStreamRefs::keep_until(Tensor tensor, std::shared_ptr<Event> done) {
  kept_.push_back({std::move(tensor), std::move(done)});
  while (kept_.size() > kMost) {
    let_go();
  }
}

void CrossStreamRefs::wait() {
  while (!kept_.empty()) {
    let_go();
  }
}

}  // namespace bloomery
