// What happened when, for --profile: spans of named work in chosen steps, written as a trace that
// Chrome and Perfetto show, and summed up in a table.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace bloomery {

// Times are nanoseconds of one steady clock.
struct TraceSpan {
  std::string name, category;  // "attention", "forward"
  std::int64_t start = 0, end = 0;
  int lane = 0;       // a thread or a stream of the device; spans of a lane nest
  std::string shape;  // of what the work made; empty: not known
};

// Any thread may add. While no step is recorded, a span costs one load and one branch.
class Trace {
 public:
  bool recording() const { return recording_.load(std::memory_order_relaxed); }

  // Records from here to end_step(). The thread that calls it has lane 0, the one that the table
  // is about unless it is told otherwise.
  void begin_step(std::int64_t iteration);
  void end_step();

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // A span of this thread.
  void add(std::string_view name, std::string_view category, std::int64_t start, std::int64_t end);
  // A lane that is no thread: "CUDA stream". Its spans are timed by whoever adds them.
  int add_lane(std::string name);
  void add(TraceSpan span);

  struct Step {
    std::int64_t iteration = 0, start = 0, end = 0;
  };
  std::vector<Step> steps() const;
  std::vector<TraceSpan> spans() const;
  std::vector<std::string> lanes() const;  // names by number

 private:
  int lane_of_this_thread();  // under the lock

  std::atomic<bool> recording_ = false;
  mutable std::mutex mutex_;
  std::vector<Step> steps_;
  std::vector<TraceSpan> spans_;
  std::vector<std::string> lanes_;
  std::unordered_map<std::thread::id, int> thread_lanes_;
};

// The work of a scope: Span span(trace, "attention", "forward"). No trace at all is allowed. The
// texts must outlive the scope.
class Span {
 public:
  Span(Trace* trace, std::string_view name, std::string_view category)
      : trace_(trace != nullptr && trace->recording() ? trace : nullptr) {
    if (trace_ != nullptr) {
      name_ = name;
      category_ = category;
      start_ = Trace::now();
    }
  }
  ~Span() {
    if (trace_ != nullptr) trace_->add(name_, category_, start_, Trace::now());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Trace* trace_;
  std::string_view name_, category_;
  std::int64_t start_ = 0;
};

// The events of a rank's trace, JSON objects with commas between; the rank is shown as a process,
// `place` beside its number. Times count from `origin`.
std::string chrome_events(const Trace& trace, int rank, const std::string& place,
                          std::int64_t origin);
// A JSON object with the `traceEvents` of all ranks.
std::string chrome_trace(const std::vector<std::string>& events);
std::string chrome_trace(const Trace& trace, int rank);  // of one rank, from its first step on

// Time of a lane inside the recorded steps by name: each instant belongs to the innermost span
// that covers it, what no span covers to the row "(unattributed)". So the rows sum to the steps
// exactly, in nanoseconds.
struct TimeRow {
  std::string name, category;
  std::int64_t calls = 0;
  std::int64_t self_ns = 0;
};
struct TimeTable {
  std::vector<TimeRow> rows;  // most time first, "(unattributed)" last
  std::int64_t step_ns = 0;   // of all steps together
  std::int64_t num_steps = 0;

  double attributed() const;  // part of the time that has a name, 0 to 1
};
TimeTable time_table(const Trace& trace, int lane = 0);
std::string to_text(const TimeTable& table);  // with headings and a line of sums

}  // namespace bloomery
