// When the executor's instructions began and ended: on a CPU by the host, on CUDA by events, when
// the device came there.
#pragma once

#include <memory>
#include <vector>

#include "device/stream.h"
#include "pipeline/schedule.h"

namespace bloomery {

// Times are nanoseconds of the steady clock.
struct InstructionTime {
  Instructions step;  // one computation, or transfers that go together
  std::int64_t start = 0, end = 0;
};

class InstructionClock {
 public:
  explicit InstructionClock(Stream& stream) : stream_(stream) {}

  void start();  // waits for the device; forgets what was before
  void begin(std::span<const Instruction> step);
  void end();
  std::vector<InstructionTime> times();  // waits for the device

 private:
  struct Events {
    std::unique_ptr<Event> start, end;
  };
  std::unique_ptr<Event> recorded();

  Stream& stream_;
  std::vector<InstructionTime> times_;
  std::vector<Events> events_;  // of a GPU
  std::unique_ptr<Event> anchor_;
  std::int64_t anchor_time_ = 0;
};

}  // namespace bloomery
