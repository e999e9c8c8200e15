#include "train/report/trace.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace bloomery {

void Trace::begin_step(std::int64_t iteration) {
  check(!recording(), "trace: step ", iteration, " begins within another");
  const std::lock_guard lock(mutex_);
  check(lane_of_this_thread() == 0, "trace: steps begin on one thread");
  steps_.push_back({iteration, now(), 0});
  recording_.store(true, std::memory_order_relaxed);
}

void Trace::end_step() {
  check(recording(), "trace: a step ends that did not begin");
  recording_.store(false, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  steps_.back().end = now();
}

void Trace::add(std::string_view name, std::string_view category, std::int64_t start,
                std::int64_t end) {
  const std::lock_guard lock(mutex_);
  spans_.push_back(
      {std::string(name), std::string(category), start, end, lane_of_this_thread(), {}});
}

int Trace::add_lane(std::string name) {
  const std::lock_guard lock(mutex_);
  if (lanes_.empty()) lanes_.emplace_back("thread 0");  // stays that of the training thread
  lanes_.push_back(std::move(name));
  return static_cast<int>(lanes_.size()) - 1;
}

void Trace::add(TraceSpan span) {
  const std::lock_guard lock(mutex_);
  check(span.lane >= 0 && span.lane < static_cast<int>(lanes_.size()), "trace: there is no lane ",
        span.lane);
  spans_.push_back(std::move(span));
}

int Trace::lane_of_this_thread() {
  const auto [entry, is_new] = thread_lanes_.try_emplace(std::this_thread::get_id(), 0);
  if (is_new && thread_lanes_.size() == 1) {
    if (lanes_.empty()) lanes_.emplace_back("thread 0");
  } else if (is_new) {
    entry->second = static_cast<int>(lanes_.size());
    lanes_.push_back(fmt::format("thread {}", thread_lanes_.size() - 1));
  }
  return entry->second;
}

std::vector<Trace::Step> Trace::steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

std::vector<TraceSpan> Trace::spans() const {
  const std::lock_guard lock(mutex_);
  return spans_;
}

std::vector<std::string> Trace::lanes() const {
  const std::lock_guard lock(mutex_);
  return lanes_;
}

std::string chrome_trace(const Trace& trace, int rank) {
  const std::vector<Trace::Step> steps = trace.steps();
  return chrome_trace({chrome_events(trace, rank, "", steps.empty() ? 0 : steps.front().start)});
}

std::string chrome_trace(const std::vector<std::string>& events) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const std::string& each : events) {
    text += text.ends_with("[\n") ? "" : ",\n";
    text += each;
  }
  return text + "\n]}\n";
}

std::string chrome_events(const Trace& trace, int rank, const std::string& place,
                          std::int64_t origin) {
  using Json = nlohmann::ordered_json;
  const std::vector<Trace::Step> steps = trace.steps();
  const std::vector<std::string> lanes = trace.lanes();
  const auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1000; };
  const auto complete = [&](const std::string& name, const std::string& category,
                            std::int64_t start, std::int64_t end, int lane) {
    return Json{{"name", name},
                {"cat", category},
                {"ph", "X"},
                {"ts", microseconds(start - origin)},
                {"dur", microseconds(end - start)},
                {"pid", rank},
                {"tid", lane}};
  };
  const auto named = [rank](const char* what, int lane, const std::string& name) {
    return Json{
        {"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}};
  };
  std::string text;
  const auto put = [&text](const Json& event) {
    text += event.dump(-1, ' ', false, Json::error_handler_t::replace);
    text += ",\n";
  };
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    put(named("thread_name", static_cast<int>(lane), lanes[lane]));
  }
  for (const Trace::Step& step : steps) {
    put(complete(fmt::format("step {}", step.iteration), "step", step.start, step.end, 0));
  }
  for (const TraceSpan& span : trace.spans()) {
    Json event = complete(span.name, span.category, span.start, span.end, span.lane);
    if (!span.shape.empty()) event["args"] = {{"shape", span.shape}};
    put(event);
  }
  const std::string process =
      place.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {}, {}", rank, place);
  put(Json{{"name", "process_sort_index"},
           {"ph", "M"},
           {"pid", rank},
           {"tid", 0},
           {"args", {{"sort_index", rank}}}});
  return text + named("process_name", 0, process).dump();
}

}  // namespace bloomery
