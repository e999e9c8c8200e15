#include "apps/launch/jobs/job_time.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr int kMostNumber = 100'000;

// Whether all are numbers, as many as `fewest` at least and `most` at most.
bool read_numbers(const std::string& text, std::size_t fewest, std::size_t most,
                  std::vector<int>& numbers) {
  std::istringstream in(text + ":");
  for (std::string word; std::getline(in, word, ':');) {
    int number = -1;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (problem != std::errc() || end != word.data() + word.size() || number < 0 ||
        number > kMostNumber) {
      return false;
    }
    numbers.push_back(number);
  }
  return numbers.size() >= fewest && numbers.size() <= most;
}

}  // namespace

int seconds_of_limit(const std::string& text) {
  const std::size_t dash = text.find('-');
  std::vector<int> days, clock;
  bool good = true;
  if (dash != std::string::npos) {  // days-hours[:minutes[:seconds]]
    good = read_numbers(text.substr(0, dash), 1, 1, days) &&
           read_numbers(text.substr(dash + 1), 1, 3, clock);
    clock.resize(3);
  } else {  // minutes, minutes:seconds or hours:minutes:seconds
    good = read_numbers(text, 1, 3, clock);
    if (good && clock.size() < 3) {
      clock.insert(clock.begin(), 0);
    }
    clock.resize(3);
  }
  const long seconds =
      ((days.empty() ? 0L : days[0]) * 24 + clock[0]) * 3600L + clock[1] * 60L + clock[2];
  check(good && seconds > 0 && seconds < 1'000'000'000, "--time ", text,
        " is no time limit: give MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS");
  return static_cast<int>(seconds);
}

std::string clock_text(int seconds) {
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace bloomery
