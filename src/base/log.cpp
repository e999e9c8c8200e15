#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "base/terminal.h"
#include "base/wrap.h"

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
             time_of_day(), " ", fitted(tag_ + line), "\n");
  // Lines of different ranks never interleave.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
}

}  // namespace bloomery
