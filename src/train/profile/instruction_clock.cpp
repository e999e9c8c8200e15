#include "train/profile/instruction_clock.h"

#include <cmath>

#include "train/report/trace.h"

namespace bloomery {

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
    const std::int64_t before = Trace::now();
    anchor_ = recorded();
    stream_.synchronize();
    anchor_time_ = before + (Trace::now() - before) / 2;
  }
}

void InstructionClock::begin(std::span<const Instruction> step) {
  times_.push_back({Instructions(step.begin(), step.end()), Trace::now(), 0});
  if (stream_.on_cuda()) {
    events_.push_back({recorded(), nullptr});
  }
}

void InstructionClock::end() {
  times_.back().end = Trace::now();
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
