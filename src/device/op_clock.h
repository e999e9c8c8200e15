// How profiles learn what runs and how long: ops say when they begin and end (OpScope), launches
// say where device work begins and ends (timed_launch), and the OpClock of the stream, if it has
// one, writes both down. Without a clock either costs one null check; builds with CUDA also give
// the scopes to NVTX, which does as little while no tool listens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "build_config.h"
#include "device/collector.h"
#include "device/cuda.h"
#include "device/stream.h"

namespace bloomery {

// What an op is a part of. Ops that do not say have the kind of the op around them; with none
// around them they belong to a forward pass.
enum class OpKind : std::uint8_t {
  inherited,
  forward,
  backward,
  recompute,  // forward once more, during backward
  optimizer,
  communication,
  data,
  wait,  // the host waits for the device
};
const char* name(OpKind kind);

// Times are nanoseconds of the steady clock.
struct OpRecord {
  const char* name = "";
  OpKind kind = OpKind::forward;
  bool is_phase = false;             // a whole forward pass, backward pass, ...
  int parent = -1;                   // the op around it: its place in OpRecording::ops; -1: none
  std::int64_t start = 0, end = -1;  // on the host
  std::string detail;                // of its output, if details were asked for
};
struct LaunchRecord {
  int op = -1;                      // the innermost op around it; -1: none
  std::int64_t start = 0, end = 0;  // on the device
};
struct OpRecording {
  std::vector<OpRecord> ops;           // as they began, so parents come first
  std::vector<LaunchRecord> launches;  // in stream order; none on a CPU, where host time is all
};

// For one stream, on the thread that gives it work. On CUDA every launch lies between two events,
// which the stream reaches when its earlier work is done: the time between them is the device's
// own, as long as the host is ahead of it (else the way from the host to the device counts too).
// It must outlive the scopes that begin while it runs.
class OpClock {
 public:
  // `details`: note the dtypes and shapes of outputs.
  explicit OpClock(Stream& stream, bool details = false) : stream_(&stream), details_(details) {}
  ~OpClock();
  OpClock(const OpClock&) = delete;
  OpClock& operator=(const OpClock&) = delete;

  void start();        // waits for the device; the stream has this clock until stop()
  OpRecording stop();  // waits for the device

  void enter(const char* name, OpKind kind, bool is_phase);
  void leave() noexcept;
  void begin_launch();
  void end_launch();

  const OpRecord* innermost() const;  // of the ops that have not ended; null: none

  bool wants_detail() const;  // of the innermost op; the first one is kept
  void note(std::string detail);

 private:
  // Launches while they are timed: numbers of their events.
  struct Pending {
    int op;
    std::size_t begin, end;
  };
  std::size_t record_event();

  Stream* stream_;
  bool details_;
  OpRecording recording_;
  int innermost_ = -1;
  int launch_depth_ = 0;  // launches inside of launches are parts of the outermost
  std::size_t launch_begin_ = 0;
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<Event>> events_;  // kept from recording to recording
  std::size_t num_events_ = 0;                  // used in this one
  std::int64_t anchor_time_ = 0;                // when event 0 happened, on the host's clock
};

// The scope of an op: OpScope scope(context.stream, "attention"). Names are string literals.
class OpScope {
 public:
  OpScope(Stream& stream, const char* name, OpKind kind = OpKind::inherited)
      : OpScope(stream, name, kind, false) {}
  // A phase of a step: what is not inside one of its ops is time between ops.
  OpScope(Stream& stream, OpKind phase) : OpScope(stream, name(phase), phase, true) {}
  ~OpScope() {
    if (clock_ != nullptr) {
      clock_->leave();
    }
    if constexpr (build::cuda) {
      cuda::pop_range();
    }
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  OpScope(Stream& stream, const char* name, OpKind kind, bool is_phase) : clock_(stream.clock()) {
    if constexpr (build::cuda) {
      cuda::push_range(name);
    }
    if (clock_ != nullptr) {
      clock_->enter(name, kind, is_phase);
    }
  }

  OpClock* clock_;
};

inline void flush_collected(Stream& stream) {
  if (Collector* const collector = stream.collector()) {
    collector->flush();
  }
}

// Around work that is given to a CUDA stream.
template <class Work>
void timed_launch(Stream& stream, const Work& work) {
  flush_collected(stream);
  OpClock* const clock = stream.clock();
  if (clock == nullptr) {
    return work();
  }
  clock->begin_launch();
  work();
  clock->end_launch();
}

}  // namespace bloomery
