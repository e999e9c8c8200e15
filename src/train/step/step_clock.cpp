#include "train/step/step_clock.h"

#include <algorithm>

#include "device/recorded.h"

namespace bloomery {

double StepClock::Step::seconds() const {
  end->synchronize();
  return end->seconds_since(*begin);
}

double StepClock::Step::waited() const {
  end->synchronize();
  return reduction_end ? reduction_end->seconds_since(*reduction_begin) : 0;
}

void StepClock::begin(std::int64_t parts) {
  now_.begin = last_end_ ? last_end_ : recorded(stream_);
  now_.parts = parts;
}

void StepClock::begin_reduction() { now_.reduction_begin = recorded(stream_); }

void StepClock::end_reduction() { now_.reduction_end = recorded(stream_); }

void StepClock::end(GraphTrial::Step kind) {
  constexpr std::size_t kKept = 4;  // steps whose outcome may be asked for
  last_end_ = now_.end = recorded(stream_);
  now_.kind = kind;
  steps_.push_front(now_);
  steps_.resize(std::min(steps_.size(), kKept));
}

}  // namespace bloomery
