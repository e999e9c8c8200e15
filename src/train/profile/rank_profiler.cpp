#include "train/profile/rank_profiler.h"

#include <algorithm>

#include "comm/watch/recorded.h"

namespace bloomery {
namespace {

constexpr const char* kInstructions = "instructions";
constexpr const char* kReductions = "reductions";

}  // namespace

RankProfiler::RankProfiler(Rank& rank, Trace& trace, bool shapes)
    : rank_(rank),
      trace_(trace),
      steps_(rank.stream(), trace, shapes),
      instructions_(rank.stream()),
      instruction_lane_(trace.add_lane(kInstructions)) {
  const auto add = [&](Stream* stream, const char* name) {
    if (stream != nullptr) {
      const bool cuda = stream->on_cuda();
      sides_.push_back(
          {stream, trace.add_lane(name), cuda ? std::make_unique<OpClock>(*stream) : nullptr});
    }
  };
  add(rank.stage().communication_stream(), "communication");
  add(rank.stage().reductions_stream(), kReductions);
  add(rank.stage().gathers_stream(), "gathers");
}

RankProfiler::~RankProfiler() { detach(); }

void RankProfiler::detach() {
  rank_.runner().executor().time_instructions(nullptr);
  if (FlightRecorder* const recorder = recorder_of(rank_.mesh().world())) {
    recorder->set_listener({});
  }
}

void RankProfiler::begin_step(std::int64_t iteration) {
  steps_.begin_step(iteration);
  instructions_.start();
  rank_.runner().executor().time_instructions(&instructions_);
  for (const Side& side : sides_) {
    if (side.clock) {
      side.clock->start();
    }
  }
  listen();
}

// The work of queued CPU streams is timed where it is done.
void RankProfiler::listen() {
  FlightRecorder* const recorder = recorder_of(rank_.mesh().world());
  if (recorder == nullptr || rank_.stream().on_cuda()) {
    return;
  }
  recorder->set_listener([this](const FlightRecorder::Finished& call) {
    for (const Side& side : sides_) {
      if (side.stream == call.stream) {
        trace_.add({.name = call.text,
                    .category = "communication",
                    .start = call.started,
                    .end = call.done,
                    .lane = side.lane,
                    .shape = call.group});
      }
    }
  });
}

void RankProfiler::end_step() {
  for (const Side& side : sides_) {
    side.stream->synchronize();
  }
  steps_.end_step();
  detach();
  add_instructions();
  for (const Side& side : sides_) {
    if (!side.clock) {
      continue;
    }
    const OpRecording recording = side.clock->stop();
    for (const LaunchRecord& launch : recording.launches) {
      const char* const name =
          launch.op < 0 ? "launch" : recording.ops[static_cast<std::size_t>(launch.op)].name;
      trace_.add({name, "communication", launch.start, launch.end, side.lane, ""});
    }
  }
}

void RankProfiler::add_instructions() {
  for (const InstructionTime& time : instructions_.times()) {
    for (const Instruction& each : time.step) {
      trace_.add({text(each), name(each.work), time.start, time.end, instruction_lane_, ""});
    }
  }
}

std::optional<double> reductions_inside_backward(const Trace& trace) {
  const std::vector<std::string> lanes = trace.lanes();
  const auto is_on = [&](const TraceSpan& span, const char* lane) {
    return lanes[static_cast<std::size_t>(span.lane)] == lane;
  };
  const std::vector<TraceSpan> spans = trace.spans();
  std::int64_t all = 0, inside = 0;
  for (const TraceSpan& sum : spans) {
    if (!is_on(sum, kReductions)) {
      continue;
    }
    all += sum.end - sum.start;
    for (const TraceSpan& pass : spans) {  // passes follow each other, so nothing counts twice
      if (is_on(pass, kInstructions) && pass.category.starts_with("backward")) {
        inside += std::max<std::int64_t>(
            0, std::min(sum.end, pass.end) - std::max(sum.start, pass.start));
      }
    }
  }
  if (all == 0) {
    return {};
  }
  return static_cast<double>(inside) / static_cast<double>(all);
}

}  // namespace bloomery
