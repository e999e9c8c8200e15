#include "text/lines/line_progress.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/number_text.h"
#include "base/terminal.h"

namespace bloomery {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr auto kRedrawInterval = std::chrono::milliseconds(200);
constexpr std::size_t kWidestBar = 30, kNarrowestBar = 8;

}  // namespace

LineProgress::LineProgress(std::ostream& out, const LineProgressOptions& options,
                           Clock::time_point start)
    : out_(out), options_(options), start_(start), last_drawn_(start) {}

double LineProgress::seconds(Clock::time_point now) const {
  return std::max(1e-9, std::chrono::duration<double>(now - start_).count());
}

void LineProgress::opened(const std::string& file) {
  if (!options_.terminal) {
    out_ << "Opening " << file << '\n';
    if (!started_) {
      out_ << "Time to startup: " << seconds(Clock::now()) << std::endl;
    }
  }
  started_ = true;
}

void LineProgress::advance(std::int64_t documents, std::uint64_t bytes,
                           std::uint64_t input_position, Clock::time_point now) {
  const std::int64_t before = documents_;
  documents_ += documents;
  bytes_ += bytes;
  input_position_ = input_position;
  if (!options_.terminal) {
    print_lines(before, now);
  } else if (!bar_shown_ || now - last_drawn_ >= kRedrawInterval) {
    draw_bar(now);
  }
}

// A chunk may pass several multiples of the interval at once; the last one is told.
void LineProgress::print_lines(std::int64_t before, Clock::time_point now) {
  const std::int64_t multiple = documents_ / options_.log_interval * options_.log_interval;
  if (multiple <= before) {
    return;
  }
  const double elapsed = seconds(now);
  out_ << "Processed " << multiple << " documents (" << static_cast<double>(documents_) / elapsed
       << " docs/s, " << static_cast<double>(bytes_) / elapsed / kMebibyte << " MB/s)."
       << std::endl;
}

// As wide as the terminal allows: the bar shrinks first, then goes, then the end of the line.
std::string LineProgress::bar_text(Clock::time_point now) const {
  const double elapsed = seconds(now);
  // The last column stays free: some terminals wrap when it is written.
  const std::size_t columns =
      (options_.columns > 0 ? options_.columns : terminal_columns(STDERR_FILENO)) - 1;
  const double share = options_.total_bytes == 0
                           ? 0
                           : std::min(1.0, static_cast<double>(input_position_) /
                                               static_cast<double>(options_.total_bytes));
  std::string head, text;
  if (options_.total_bytes > 0) {
    head = fixed(share * 100, 0) + "%  ";
    if (share > 0) head += "ETA " + clock_text(elapsed / share - elapsed) + "  ";
  }
  text = concat(head, documents_, " documents  ", size_text(static_cast<double>(bytes_)), "  ",
                size_text(static_cast<double>(bytes_) / elapsed), "/s  ",
                fixed(static_cast<double>(documents_) / elapsed, 0), " docs/s");
  constexpr std::size_t kAroundBar = 3;  // its ends and a space
  const std::size_t room = columns - std::min(columns, text.size() + kAroundBar);
  if (options_.total_bytes > 0 && room >= kNarrowestBar) {
    const std::size_t width = std::min(room, kWidestBar);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
    text = concat('[', std::string(filled, '#'), std::string(width - filled, '.'), "] ", text);
  }
  return std::string(first_columns(text, columns));
}

void LineProgress::draw_bar(Clock::time_point now) {
  out_ << "\r" << bar_text(now) << "\x1B[K"
       << std::flush;  // the code clears what is left of a line
  last_drawn_ = now;
  bar_shown_ = true;
}

void LineProgress::clear_bar() {
  if (bar_shown_) {
    out_ << "\r\x1B[K";
    bar_shown_ = false;
  }
}

void LineProgress::message(const std::string& text) {
  clear_bar();
  out_ << text << std::endl;
}

void LineProgress::finish() {
  if (options_.terminal && started_) {
    draw_bar(Clock::now());
    out_ << std::endl;
    bar_shown_ = false;
  }
}

}  // namespace bloomery
