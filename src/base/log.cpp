#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "base/terminal.h"
#include "base/wrap.h"

namespace bloomery {
namespace {

spdlog::level::level_enum translate(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// One sink for the process: lines of different ranks never interleave.
spdlog::logger& stderr_logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    const auto colours = wants_colour() ? spdlog::color_mode::automatic : spdlog::color_mode::never;
    auto made = std::make_shared<spdlog::logger>(
        "bloomery", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(colours));
    made->set_pattern("%^%L%$ %H:%M:%S %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *logger;
}

// Lines that fit the terminal; elsewhere, where programs read them, they stay whole.
std::string fitted(const std::string& text) {
  constexpr std::size_t kHead = 11;  // "I 12:00:00 "
  const std::size_t columns = terminal_columns(STDERR_FILENO);
  if (!is_terminal(STDERR_FILENO) || columns < 2 * kHead) {
    return text;
  }
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string first =
      wrapped(std::string(kHead, ' '), text.substr(0, end), columns, kHead).substr(kHead);
  return first + wrapped_lines(text.substr(end), columns);
}

LogLevel translate(spdlog::level::level_enum level) {
  for (const LogLevel ours : {LogLevel::debug, LogLevel::info, LogLevel::warning}) {
    if (translate(ours) == level) return ours;
  }
  return LogLevel::error;
}

}  // namespace

LogThreshold::LogThreshold(LogLevel least) : before_(least_logged()) {
  stderr_logger().set_level(translate(least));
}

LogThreshold::~LogThreshold() { stderr_logger().set_level(translate(before_)); }

LogLevel least_logged() { return translate(stderr_logger().level()); }

Log::Log(int rank, int num_ranks, LogLevel threshold)
    : tag_(num_ranks > 1 ? concat("[rank ", rank, "] ") : ""), threshold_(threshold) {}

void Log::write(LogLevel level, const std::string& line) const {
  if (level >= threshold_) {
    stderr_logger().log(translate(level), "{}", fitted(tag_ + line));
  }
}

}  // namespace bloomery
