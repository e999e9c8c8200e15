#include "zero/gatherer.h"

#include "device/recorded.h"

namespace bloomery {
std::shared_ptr<Event> Gatherer::start(std::span<const Gather> gathers) {
  if (beside_ != nullptr) {
    beside_->wait(*recorded(*compute_));
  }
  for (const Gather& gather : gathers) {
    mesh_->gathers(gather.bucket->kind.axes)
        .all_gather(gather.shard, gather.whole, beside_ != nullptr ? *beside_ : *compute_);
  }
  last_ = beside_ != nullptr ? recorded(*beside_) : nullptr;
  return last_;
}

void Gatherer::wait(const std::shared_ptr<Event>& arrived) {
  if (arrived) {
    compute_->wait(*arrived);
  }
}

}  // namespace bloomery
