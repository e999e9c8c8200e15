// How far a long command is, and how long it will take: one line on a terminal that is redrawn and
// then cleared. Where messages do not reach a terminal nothing is shown.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bloomery {

class ProgressLine {
 public:
  explicit ProgressLine(std::string unit);
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // So much is done of `total` (0: not known); may be called as often as one likes.
  void at(std::int64_t done, std::int64_t total);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::string unit_;
  bool terminal_, shown_ = false;
  Clock::time_point start_ = Clock::now(), drawn_ = start_;
};

// "120 of 4000 windows, 3 %, 0:41 left"
std::string progress_text(std::int64_t done, std::int64_t total, double seconds,
                          const std::string& unit);

}  // namespace bloomery
