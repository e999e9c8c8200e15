#include "train/profile/step_profiler.h"

#include <algorithm>
#include <utility>

namespace bloomery {
namespace {

TraceSpan span_of(const OpRecord& op, std::int64_t start, std::int64_t end, int lane) {
  return {.name = op.name,
          .category = op.is_phase ? "between ops" : name(op.kind),
          .start = start,
          .end = end,
          .lane = lane,
          .shape = op.detail};
}

}  // namespace

StepProfiler::StepProfiler(Stream& stream, Trace& trace, bool shapes)
    : stream_(&stream), trace_(&trace), clock_(stream, shapes) {
  if (stream.on_cuda()) {
    lane_ = trace.add_lane(stream.device().description());
  }
}

void StepProfiler::begin_step(std::int64_t iteration) {
  clock_.start();
  trace_->begin_step(iteration);
}

void StepProfiler::end_step() {
  stream_->synchronize();
  trace_->end_step();  // before the clock reads its events: that takes a while
  const OpRecording recording = clock_.stop();
  for (const OpRecord& op : recording.ops) {
    trace_->add(span_of(op, op.start, op.end, 0));
  }
  if (lane_ != 0) {
    add_device_spans(recording);
  }
}

// An op takes the device from the first launch in it to the last; idle time in between is not its.
void StepProfiler::add_device_spans(const OpRecording& recording) {
  const Trace::Step step = trace_->steps().back();
  std::vector<std::pair<std::int64_t, std::int64_t>> busy(recording.ops.size(), {0, -1});
  std::vector<TraceSpan> idle;
  std::int64_t done = step.start;
  const auto idle_until = [&](std::int64_t time) {
    if (time > done) {
      idle.push_back({"(idle)", "device", done, time, lane_, ""});
    }
  };
  for (const LaunchRecord& launch : recording.launches) {
    idle_until(launch.start);
    done = std::max(done, launch.end);
    for (int i = launch.op; i >= 0; i = recording.ops[static_cast<std::size_t>(i)].parent) {
      auto& [start, end] = busy[static_cast<std::size_t>(i)];
      start = end < start ? launch.start : start;
      end = launch.end;
    }
  }
  idle_until(step.end);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (busy[i].first <= busy[i].second) {
      trace_->add(span_of(recording.ops[i], busy[i].first, busy[i].second, lane_));
    }
  }
  for (TraceSpan& span : idle) {
    trace_->add(std::move(span));
  }
}

}  // namespace bloomery
