#include "train/profile/run_profile.h"

#include <exception>
#include <utility>

#include "base/file.h"

namespace bloomery {

RunProfile::RunProfile(Stream& stream, const LoggingOptions& options, std::filesystem::path file)
    : first_(options.profile_steps.front()),
      last_(options.profile_steps.back()),
      file_(std::move(file)),
      profiler_(stream, trace_, options.profile == "pt-full") {}

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
  const std::vector<Trace::Step> steps = trace_.steps();
  if (written_ || steps.empty()) {
    return "";
  }
  const std::string trace =
      concat("trace of iterations ", steps.front().iteration, " to ", steps.back().iteration);
  try {
    write_file(file_, chrome_trace(trace_, 0));
  } catch (const std::exception& error) {  // no reason to end a run
    const std::string table = std::exchange(failed_, true) ? "" : to_text(profiler_.table());
    return concat(table, trace, ": ", error.what(), "; it is written at the end if that works");
  }
  written_ = true;
  return concat(failed_ ? "" : to_text(profiler_.table()), trace, ": ", file_.string(),
                " (open it in Perfetto or chrome://tracing)");
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
