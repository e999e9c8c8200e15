#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "base/terminal.h"

namespace bloomery {
namespace {

struct Letter {
  const char *text, *colour;
};
// In the order of LogLevel.
constexpr std::array<Letter, 4> kLetters{
    {{"D", "\033[36m"}, {"I", "\033[32m"}, {"W", "\033[33m\033[1m"}, {"E", "\033[31m\033[1m"}}};

std::atomic<LogLevel>& least() {
  static std::atomic<LogLevel> level = LogLevel::info;
  return level;
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &parts)};
}

}  // namespace

LogThreshold::LogThreshold(LogLevel level) : before_(least().exchange(level)) {}

LogThreshold::~LogThreshold() { least() = before_; }

LogLevel least_logged() { return least(); }

Log::Log(int rank, int num_ranks, LogLevel threshold)
    : tag_(num_ranks > 1 ? concat("[rank ", rank, "] ") : ""), threshold_(threshold) {}

void Log::write(LogLevel level, const std::string& line) const {
  if (level < threshold_ || level < least()) return;
  static const bool coloured = wants_colour() && is_terminal(STDERR_FILENO);
  const Letter letter = kLetters[static_cast<std::size_t>(level)];
  const std::string whole =
      concat(coloured ? letter.colour : "", letter.text, coloured ? "\033[m" : "", " ",
             time_of_day(), " ", tag_, line, "\n");
  // Lines of different ranks never interleave.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
}

}  // namespace bloomery
