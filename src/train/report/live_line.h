// One line at the bottom of a terminal that says how far a run is.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace bloomery {

struct LiveState {
  std::int64_t iteration = 0, train_iterations = 0;
  double loss = 0;
  double tokens_per_second = 0;       // 0: not known yet
  std::optional<double> utilisation;  // MFU, 0 to 1, where the peak of the device is known
  std::optional<std::int64_t> memory_bytes;
  double seconds_left = -1;  // negative: not known yet
};

struct LiveStyle {
  int columns = 80;
  bool unicode = true;
  bool colour = false;
};

// A line of at most `columns` characters. A narrow terminal first shortens the bar, then loses it,
// then loses memory, utilisation, speed and what is left, in this order.
std::string live_line(const LiveState& state, const LiveStyle& style);

// "48s", "3m 12s", "2h 05m", "4d 03h".
std::string short_duration(double seconds);
// "912", "48.2k", "1.31M": three digits and a decimal prefix.
std::string short_count(double value);

// Writes the line to a file descriptor when that is a terminal, and nothing otherwise.
class LiveWriter {
 public:
  explicit LiveWriter(int descriptor = 2);
  ~LiveWriter();  // clears the line
  LiveWriter(const LiveWriter&) = delete;
  LiveWriter& operator=(const LiveWriter&) = delete;

  bool active() const { return active_; }
  // Replaces the line, at most ten times a second; further calls in between cost a clock reading.
  void update(const LiveState& state);
  // Takes the line away, so that an ordinary one can be written in its place.
  void clear();

 private:
  void write(const std::string& text) const;

  int descriptor_;
  bool active_, shown_ = false;
  LiveStyle style_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace bloomery
