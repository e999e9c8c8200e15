#include "optim/host_update.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/op_clock.h"
#include "device/recorded.h"

namespace bloomery {

HostUpdate::HostUpdate(Stream& compute, Stream& copies, std::vector<FlatShard>& shards, Rule rule)
    : compute_(&compute),
      copies_(&copies),
      host_(nullptr),
      rule_(std::move(rule)),
      scalars_(std::make_unique<PinnedMemory>(compute.device().kind(), sizeof(UpdateScalars))) {
  for (FlatShard& shard : shards) {
    if (!shard.on_device()) {
      host_ = shard.host;
      files_ = shard.files;
      add_parts(shard);
    }
  }
  check(host_ != nullptr, "an update on the host of shards that are all on the device");
  if (files_ != nullptr) {
    std::int64_t most = 0;
    for (const Part& part : parts_) {
      most = std::max(most, part.place.count);
    }
    const FlatShard& shard = *parts_.front().shard;
    files_->reserve(1 + shard.state.size(), most, shard.master.dtype());
  }
}

// The work of the host uses this.
HostUpdate::~HostUpdate() {
  try {
    host_->synchronize();
    if (files_ != nullptr) {
      files_->finish();
    }
  } catch (const std::exception&) {  // told by whoever waited, or the run has failed before
  }
}

void HostUpdate::add_parts(FlatShard& shard) {
  using Sends = Part::Sends;
  const Sends sends = shard.form == WeightForm::exact               ? Sends::nothing
                      : shard.value.dtype() == shard.master.dtype() ? Sends::master
                                                                    : Sends::rounded;
  const Shape all{shard.master.numel()};
  const Tensor grads = Tensor::empty(*host_, shard.grad.dtype(), all);
  Tensor rounded;
  if (sends == Sends::rounded) {
    rounded = shard.value_placement != Placement::device
                  ? shard.value
                  : Tensor::empty(*host_, shard.value.dtype(), all);
  }
  for (const HostPart& place : shard.host_parts) {
    const Shape shape{place.count};
    Part& part = parts_.emplace_back();
    part.shard = &shard;
    part.place = place;
    part.grad = grads.range(place.first, shape);
    part.sends = sends;
    part.rounded = sends == Sends::rounded ? rounded.range(place.first, shape) : Tensor();
  }
}

void HostUpdate::fetch(Part& part) {
  const Tensor from = part.shard->grad.range(part.place.first, {part.place.count});
  copies_->copy(part.grad.data(), from.data(), from.bytes());
  part.fetched = true;
}

void HostUpdate::fetch_gradients(std::size_t bucket, Stream& after) {
  await(bucket);  // the update before this one reads what is written here
  bool waited = false;
  for (Part& part : parts_) {
    if (part.place.bucket == bucket) {
      if (!std::exchange(waited, true)) {
        copies_->wait(*recorded(after));
      }
      fetch(part);
    }
  }
}

void HostUpdate::start(const UpdateScalars* scalars) {
  copies_->wait(*recorded(*compute_));
  for (Part& part : parts_) {
    if (!part.fetched) {
      fetch(part);
    }
    part.fetched = false;
    part.awaited = part.sent = false;  // nothing is under way
    part.arrived.reset();
    part.failure = nullptr;
  }
  copies_->copy(scalars_->data(), scalars, sizeof *scalars);
  host_->submit([ready = recorded(*copies_)] { ready->synchronize(); });
  read_ahead(0);
  read_ahead(1);
  for (std::size_t turn = 0; turn < parts_.size(); ++turn) {
    update(turn);
    read_ahead(turn + 2);
  }
}

StateFiles::Part HostUpdate::state_of(std::size_t turn) const {
  const Part& part = parts_[parts_.size() - 1 - turn];
  const auto piece = [&](const Tensor& of) {
    return of.range(part.place.first, {part.place.count});
  };
  StateFiles::Part pieces{piece(part.shard->master)};
  for (const Tensor& tensor : part.shard->state) {
    pieces.push_back(piece(tensor));
  }
  return pieces;
}

void HostUpdate::read_ahead(std::size_t turn) {
  if (files_ != nullptr && turn < parts_.size()) {
    files_->read(turn, state_of(turn));
  }
}

void HostUpdate::update(std::size_t turn) {
  Part& part = parts_[parts_.size() - 1 - turn];
  const StateFiles::Part home = state_of(turn);
  const StateFiles::Part here = files_ != nullptr ? files_->take(turn, home) : home;
  const std::int64_t unit = part.place.first / kUnitSize, units = num_units(part.place.count);
  const bool rounds = part.sends == Part::Sends::rounded;
  UpdateBuffers buffers{.grad = part.grad,
                        .form = rounds ? WeightForm::master : WeightForm::exact,
                        .master = here[0],
                        .value = part.rounded,
                        .low = {},
                        .state = {},
                        .unit_flags = part.shard->host_flags.range(unit, {units})};
  std::copy(here.begin() + 1, here.end(), buffers.state.begin());
  rule_(*host_, buffers, static_cast<const UpdateScalars*>(scalars_->data()));
  if (part.sends == Part::Sends::master) {
    part.master = here[0];
  }
  host_->submit([this, &part] { send(part); });
  if (files_ != nullptr) {
    files_->write(turn, home);
  }
}

// On the host's own thread, beside a GPU. Whoever waits for the part hears how this ended.
void HostUpdate::send(Part& part) {
  std::shared_ptr<Event> arrived;
  std::exception_ptr failure;
  try {
    arrived = copy_value(part);
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    part.arrived = std::move(arrived);
    part.failure = failure;
    part.sent = true;
  }
  changed_.notify_all();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

std::shared_ptr<Event> HostUpdate::copy_value(Part& part) {
  using Sends = Part::Sends;
  const bool skipped = static_cast<const UpdateScalars*>(scalars_->data())->skip != 0;
  if (skipped || part.sends == Sends::nothing) {
    return {};
  }
  const Tensor to = part.shard->value.range(part.place.first, {part.place.count});
  const bool master = part.sends == Sends::master;
  if (part.shard->value_placement != Placement::device) {
    if (master) {  // what is rounded was rounded to there
      std::memcpy(to.data(), part.master.data(), to.bytes());
    }
    return {};
  }
  use_device(compute_->device().options());
  copies_->copy(to.data(), (master ? part.master : part.rounded).data(), to.bytes());
  std::shared_ptr<Event> arrived = recorded(*copies_);
  if (files_ != nullptr && master) {
    arrived->synchronize();  // the memory serves another part
  }
  return arrived;
}

void HostUpdate::await(std::size_t bucket) {
  for (Part& part : parts_) {
    if (part.place.bucket != bucket || std::exchange(part.awaited, true) || compute_->abstract()) {
      continue;
    }
    const OpScope scope(*compute_, "await_update", OpKind::wait);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return part.sent; });
    if (part.failure) {
      std::rethrow_exception(std::exchange(part.failure, nullptr));
    }
    if (part.arrived) {
      compute_->wait(*std::exchange(part.arrived, {}));
    }
  }
}

void HostUpdate::await_all() {
  for (const Part& part : parts_) {
    await(part.place.bucket);
  }
}

void HostUpdate::finish() {
  host_->synchronize();
  await_all();
  copies_->synchronize();
  if (files_ != nullptr) {
    files_->finish();
  }
}

}  // namespace bloomery
