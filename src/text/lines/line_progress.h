// What a person sees of a long pass over lines: a bar on a terminal, else Megatron's lines.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

namespace bloomery {

struct LineProgressOptions {
  bool terminal = false;
  std::int64_t log_interval = 1000;  // documents between lines
  std::uint64_t total_bytes = 0;     // of the files as they are on disk; 0: not known
  std::size_t columns = 0;           // of the terminal; 0: as wide as standard error is then
};

class LineProgress {
 public:
  using Clock = std::chrono::steady_clock;

  LineProgress(std::ostream& out, const LineProgressOptions& options,
               Clock::time_point start = Clock::now());

  void opened(const std::string& file);
  // More documents and bytes of text are done; `input_position` is how far the files are read.
  void advance(std::int64_t documents, std::uint64_t bytes, std::uint64_t input_position,
               Clock::time_point now = Clock::now());
  // A line of its own, above the bar if there is one.
  void message(const std::string& text);
  void finish();

 private:
  void print_lines(std::int64_t before, Clock::time_point now);
  void draw_bar(Clock::time_point now);
  std::string bar_text(Clock::time_point now) const;
  void clear_bar();
  double seconds(Clock::time_point now) const;

  std::ostream& out_;
  const LineProgressOptions options_;
  const Clock::time_point start_;
  Clock::time_point last_drawn_;
  std::int64_t documents_ = 0;
  std::uint64_t bytes_ = 0, input_position_ = 0;
  bool started_ = false, bar_shown_ = false;
};

}  // namespace bloomery
