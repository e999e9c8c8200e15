#include "data/lines/line_progress.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/number_text.h"

namespace bloomery {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr auto kRedrawInterval = std::chrono::milliseconds(200);
constexpr int kBarWidth = 30;

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

void LineProgress::draw_bar(Clock::time_point now) {
  const double elapsed = seconds(now);
  std::ostringstream line;
  if (options_.total_bytes > 0) {
    const double share = std::min(
        1.0, static_cast<double>(input_position_) / static_cast<double>(options_.total_bytes));
    const int filled = static_cast<int>(share * kBarWidth);
    line << '[' << std::string(static_cast<std::size_t>(filled), '#')
         << std::string(static_cast<std::size_t>(kBarWidth - filled), '.') << "] "
         << fixed(share * 100, 0) << "%  ";
    if (share > 0) {
      line << "ETA " << clock_text(elapsed / share - elapsed) << "  ";
    }
  }
  line << documents_ << " documents  " << size_text(static_cast<double>(bytes_)) << "  "
       << size_text(static_cast<double>(bytes_) / elapsed) << "/s  "
       << fixed(static_cast<double>(documents_) / elapsed, 0) << " docs/s";
  out_ << "\r" << line.str() << "\x1B[K" << std::flush;  // the code clears what is left of a line
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
