#include "train/profile/instruction_clock.h"

#include <chrono>
#include <cmath>

namespace bloomery {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::unique_ptr<Event> InstructionClock::recorded() {
  auto event = std::make_unique<Event>(stream_.device());
  event->record(stream_);
  return event;
}

void InstructionClock::start() {
  times_.clear();
  events_.clear();
  if (stream_.on_cuda()) {
    stream_.synchronize();
    const std::int64_t before = now();
    anchor_ = recorded();
    stream_.synchronize();
    anchor_time_ = before + (now() - before) / 2;
  }
}

void InstructionClock::begin(std::span<const Instruction> step) {
  times_.push_back({Instructions(step.begin(), step.end()), now(), 0});
  if (stream_.on_cuda()) {
    events_.push_back({recorded(), nullptr});
  }
}

void InstructionClock::end() {
  times_.back().end = now();
  if (stream_.on_cuda()) {
    events_.back().end = recorded();
  }
}

std::vector<InstructionTime> InstructionClock::times() {
  stream_.synchronize();
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const auto time_of = [this](const Event& event) {
      return anchor_time_ + std::llround(event.seconds_since(*anchor_) * 1e9);
    };
    times_[i].start = time_of(*events_[i].start);
    times_[i].end = time_of(*events_[i].end);
  }
  events_.clear();
  return times_;
}

}  // namespace bloomery
