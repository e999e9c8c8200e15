#include "zero/gatherer.h"

#include "device/recorded.h"

namespace bloomery {
std::shared_ptr<Event> Gatherer::start(std::span<const Gather> gathers) {
  Stream& stream = beside_ != nullptr ? *beside_ : *compute_;
  for (const Gather& gather : gathers) {
    if (before_gather) {
      before_gather(*gather.bucket);
    }
  }
  if (beside_ != nullptr) {
    beside_->wait(*recorded(*compute_));
  }
  for (const Gather& gather : gathers) {
    Tensor shard = gather.shard;
    if (gather.placement != Placement::device) {
      shard = gather.whole.range(gather.bucket->shard_begin(), {gather.bucket->shard_size()});
      stream.copy(shard.data(), gather.shard.data(), shard.bytes());
    }
    mesh_->gathers(gather.bucket->kind.axes).all_gather(shard, gather.whole, stream);
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
