#include "zero/reducer.h"

#include <algorithm>

#include "device/recorded.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
void Reducer::contributed(Parameter& parameter, std::int64_t micro_batch) {
  if (const auto bucket = store_.contributed(parameter, micro_batch)) {
    start(*bucket);
  }
}

void Reducer::start(std::size_t bucket) {
  start_sum(bucket);
  if (on_final && store_.is_final(bucket)) {
    on_final(bucket, communication_ != nullptr ? *communication_ : compute_);
  }
}

void Reducer::start_sum(std::size_t bucket) {
  const BucketKind& kind = store_.buckets()[bucket].kind;
  const bool alone = mesh_.size(kind.axes) == 1 && kind.tie == 0;
  if (alone && !store_.sharded().gradients) {
    if (communication_ != nullptr && on_final) {  // which follows that stream
      communication_->wait(*recorded(compute_));
    }
    return;
  }
  Tensor grads = store_.take_grads(bucket);
  const bool rounds = !alone && grads.dtype() == DType::fp32 && reduce_dtype_ != DType::fp32;
  Tensor sent = rounds ? Tensor::empty(compute_, reduce_dtype_, grads.shape()) : grads;
  if (communication_ == nullptr) {
    return sum(bucket, grads, sent, compute_);
  }
  communication_->wait(*recorded(compute_));
  sum(bucket, grads, sent, *communication_);
  last_ = recorded(*communication_);
  kept_.wait();  // one bucket is on its way while the next is made, no more
  if (rounds) {
    kept_.keep_until(std::move(sent), last_);
  }
  if (store_.sharded().gradients) {  // else it is a part of a buffer that stays
    kept_.keep_until(std::move(grads), last_);
  }
}

// Of `sent`, which are the gradients or takes them rounded.
void Reducer::sum(std::size_t bucket, const Tensor& grads, const Tensor& sent, Stream& stream) {
  const Bucket& b = store_.buckets()[bucket];
  const bool rounds = sent.data() != grads.data();
  if (rounds) {
    launch(stream, ScaleAdd{.x = grads, .y = sent});
  }
  if (b.kind.tie != 0) {
    ties_.stages(b.kind.tie).all_reduce(sent, Reduce::sum, stream);
  }
  Communicator& replicas = mesh_.reductions(b.kind.axes);
  const Tensor own = sent.range(b.shard_begin(), {b.shard_size()});
  if (b.num_shards == 1) {
    replicas.all_reduce(sent, Reduce::sum, stream);
  } else {
    replicas.reduce_scatter(sent, own, Reduce::sum, stream);
  }
  if (store_.sharded().gradients) {
    const ParameterStore::GradShard shard = store_.grad_shard(bucket);
    launch(stream, ScaleAdd{.x = own, .y = shard.sums, .add = shard.add});
  } else if (rounds) {
    launch(stream, ScaleAdd{.x = own, .y = grads.range(b.shard_begin(), {b.shard_size()})});
  }
}

void Reducer::finish_step() {
  std::vector<std::size_t> left = store_.finish_step();
  std::ranges::stable_sort(  // weights that stages share in one order on all of them
      left, {}, [&](std::size_t bucket) { return store_.buckets()[bucket].kind.tie; });
  for (const std::size_t bucket : left) {
    start(bucket);
  }
  if (last_) {
    compute_.wait(*last_);
    last_.reset();
  }
  kept_.wait();
  if (communication_ != nullptr && communication_->queued()) {
    communication_->synchronize();  // says what went wrong there
  }
}

}  // namespace bloomery
