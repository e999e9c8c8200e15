#include "device/op_clock.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace bloomery {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

const char* name(OpKind kind) {
  switch (kind) {
    case OpKind::inherited:
      return "inherited";
    case OpKind::forward:
      return "forward";
    case OpKind::backward:
      return "backward";
    case OpKind::recompute:
      return "recompute";
    case OpKind::optimizer:
      return "optimizer";
    case OpKind::communication:
      return "communication";
    case OpKind::data:
      return "data";
    case OpKind::wait:
      return "wait";
  }
  return "unknown";
}

OpClock::~OpClock() {
  if (stream_->clock() == this) {
    stream_->set_clock(nullptr);
  }
}

void OpClock::start() {
  check(stream_->clock() == nullptr, "op clock: the stream has one already");
  recording_ = {};
  pending_.clear();
  innermost_ = -1;
  launch_depth_ = 0;
  num_events_ = 0;
  stream_->synchronize();
  if (stream_->on_cuda()) {
    // The stream is idle, so the event happens at once: halfway between the two readings.
    const std::int64_t before = now();
    record_event();
    stream_->synchronize();
    anchor_time_ = before + (now() - before) / 2;
  }
  stream_->set_clock(this);
}

OpRecording OpClock::stop() {
  check(stream_->clock() == this, "op clock: stopped before it was started");
  stream_->synchronize();
  stream_->set_clock(nullptr);
  innermost_ = -1;
  const std::int64_t end = now();
  for (OpRecord& op : recording_.ops) {
    if (op.end < op.start) {
      op.end = end;  // it goes on, but the recording does not
    }
  }
  const auto time_of = [this](std::size_t event) {
    const double seconds = events_[event]->seconds_since(*events_[0]);
    return anchor_time_ + std::llround(seconds * 1e9);
  };
  recording_.launches.reserve(pending_.size());
  for (const Pending& launch : pending_) {
    recording_.launches.push_back({launch.op, time_of(launch.begin), time_of(launch.end)});
  }
  return std::exchange(recording_, {});
}

void OpClock::enter(const char* name, OpKind kind, bool is_phase) {
  auto& ops = recording_.ops;
  if (kind == OpKind::inherited) {
    kind = innermost_ >= 0 ? ops[static_cast<std::size_t>(innermost_)].kind : OpKind::forward;
  }
  ops.push_back({.name = name, .kind = kind, .is_phase = is_phase, .parent = innermost_});
  innermost_ = static_cast<int>(ops.size()) - 1;
  ops.back().start = now();
}

void OpClock::leave() noexcept {
  if (innermost_ < 0) {
    return;  // the recording in which it began is over
  }
  OpRecord& op = recording_.ops[static_cast<std::size_t>(innermost_)];
  op.end = now();
  innermost_ = op.parent;
}

std::size_t OpClock::record_event() {
  if (num_events_ == events_.size()) {
    events_.push_back(std::make_unique<Event>(stream_->device()));
  }
  events_[num_events_]->record(*stream_);
  return num_events_++;
}

void OpClock::begin_launch() {
  if (launch_depth_++ == 0) {
    launch_begin_ = record_event();
  }
}

void OpClock::end_launch() {
  if (--launch_depth_ == 0) {
    pending_.push_back({innermost_, launch_begin_, record_event()});
  }
}

const OpRecord* OpClock::innermost() const {
  return innermost_ < 0 ? nullptr : &recording_.ops[static_cast<std::size_t>(innermost_)];
}

bool OpClock::wants_detail() const {
  const OpRecord* const op = details_ ? innermost() : nullptr;
  return op != nullptr && !op->is_phase && op->detail.empty();
}

void OpClock::note(std::string detail) {
  if (wants_detail()) {
    recording_.ops[static_cast<std::size_t>(innermost_)].detail = std::move(detail);
  }
}

}  // namespace bloomery
