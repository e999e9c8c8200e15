// When steps begin and end, by the device's clock: the latest first.
#pragma once

#include <deque>
#include <memory>

#include "device/stream.h"
#include "train/step/graph_choice.h"

namespace bloomery {

class StepClock {
 public:
  explicit StepClock(Stream& stream) : stream_(stream) {}

  struct Step {
    std::shared_ptr<Event> begin, end;
    std::shared_ptr<Event> reduction_begin, reduction_end;
    GraphTrial::Step kind = GraphTrial::Step::other;
    std::int64_t parts = 0;  // micro-batches on all ranks together

    double seconds() const;  // waits for the end, as the other does
    double waited() const;   // of them, at the end of backward, for sums of gradients
  };

  // Of `parts` micro-batches. It begins where the one before it ended, unless restart() was called.
  void begin(std::int64_t parts);
  void begin_reduction();
  void end_reduction();
  void end(GraphTrial::Step kind);
  void restart() { last_end_.reset(); }

  std::size_t num_steps() const { return steps_.size(); }
  // The step before the last `age` ones; the last four are known.
  const Step& step(int age) const { return steps_.at(static_cast<std::size_t>(age)); }

 private:
  Stream& stream_;
  std::deque<Step> steps_;
  Step now_;                         // the one in work
  std::shared_ptr<Event> last_end_;  // of the one before, or null
};

}  // namespace bloomery
