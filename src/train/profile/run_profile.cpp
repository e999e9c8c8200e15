#include "train/profile/run_profile.h"

#include <fmt/core.h>

#include <exception>
#include <utility>

#include "base/file.h"
#include "train/profile/clock_offset.h"

namespace bloomery {

RunProfile::RunProfile(Rank& rank, const LoggingOptions& options, std::filesystem::path file)
    : rank_(rank),
      first_(options.profile_steps.front()),
      last_(options.profile_steps.back()),
      file_(std::move(file)),
      profiler_(rank, trace_, options.profile == "pt-full") {}

void RunProfile::begin(std::int64_t iteration) {
  if (chosen(iteration)) {
    profiler_.begin_step(iteration);
  }
}

std::string RunProfile::end(std::int64_t iteration) {
  if (!chosen(iteration)) {
    return "";
  }
  profiler_.end_step();
  return iteration + 1 < last_ ? "" : finish();
}

std::string RunProfile::finish() {
  if (written_ || trace_.steps().empty()) {
    return "";
  }
  const std::string text = gathered_trace();
  HostGroup& host = rank_.mesh().host();
  const std::string said = host.rank() == 0 ? write(text) : "";
  written_ = host.any("trace is written", written_);
  return said;
}

std::string RunProfile::table() const {
  std::string text = to_text(profiler_.table());
  if (const auto inside = reductions_inside_backward(trace_)) {
    text += fmt::format("reductions: {:.0f} % inside backward\n", *inside * 100);
  }
  return text;
}

// Of the first rank.
std::string RunProfile::write(const std::string& text) {
  const std::vector<Trace::Step> steps = trace_.steps();
  const std::string trace =
      concat("trace of iterations ", steps.front().iteration, " to ", steps.back().iteration);
  try {
    write_file(file_, text);
  } catch (const std::exception& error) {  // no reason to end a run
    const std::string shown = std::exchange(failed_, true) ? "" : table();
    return concat(shown, trace, ": ", error.what(), "; it is written at the end if that works");
  }
  written_ = true;
  return concat(failed_ ? "" : table(), trace, ": ", file_.string(),
                " (open it in Perfetto or chrome://tracing)");
}

// Times count from the first rank's first step, by its clock.
std::string RunProfile::gathered_trace() {
  HostGroup& host = rank_.mesh().host();
  const std::int64_t ahead = ahead_of_first(host);
  const std::int64_t origin = std::stoll(
      host.broadcast("start of the trace", std::to_string(trace_.steps().front().start), 0));
  return chrome_trace(host.gather(
      "trace", chrome_events(trace_, host.rank(), rank_.mesh().place(), origin + ahead)));
}

std::filesystem::path trace_file(const PretrainOptions& options) {
  const std::string& folder =
      options.checkpoint.save.empty() ? options.logging.tensorboard_dir : options.checkpoint.save;
  if (!folder.empty()) {
    std::error_code failed;  // writing the trace will say it
    std::filesystem::create_directories(folder, failed);
  }
  std::filesystem::path path = std::filesystem::path(folder) / "trace.json";
  std::error_code unknown;  // as good as absent
  for (int number = 2; std::filesystem::exists(path, unknown); ++number) {
    path.replace_filename(concat("trace-", number, ".json"));
  }
  return path;
}

}  // namespace bloomery
