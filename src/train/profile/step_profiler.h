// Profiles chosen steps of one rank: the scopes that ops open on its stream (device/op_clock.h)
// become spans of a Trace. On a CPU they are on lane 0, the training thread. With a GPU lane 0
// shows when the host asked for the work and another lane when the GPU did it; "(idle)" there is
// where it had none.
//
//   StepProfiler profiler(rank.stream(), trace);
//   profiler.begin_step(i); ... one step ...; profiler.end_step();
//   write(chrome_trace(trace, rank)), print(to_text(profiler.table()))
#pragma once

#include <cstdint>

#include "device/op_clock.h"
#include "train/report/trace.h"

namespace bloomery {

class StepProfiler {
 public:
  // `shapes`: spans carry the shape of what their op made. The trace and the stream must outlive
  // the profiler; all calls are on the thread that gives the stream its work.
  StepProfiler(Stream& stream, Trace& trace, bool shapes = false);

  // Both wait for the device, so that a step has its own work only. A step that fails need not
  // end: the profiler's destructor detaches it from the stream.
  void begin_step(std::int64_t iteration);
  void end_step();

  // Where the time went: of the GPU if there is one, else of the training thread.
  TimeTable table() const { return time_table(*trace_, lane_); }
  int lane() const { return lane_; }

 private:
  void add_device_spans(const OpRecording& recording);

  Stream* stream_;
  Trace* trace_;
  OpClock clock_;
  int lane_ = 0;
};

}  // namespace bloomery
