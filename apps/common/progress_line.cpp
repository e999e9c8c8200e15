#include "apps/common/progress_line.h"

#include <unistd.h>

#include "apps/common/command_line.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/terminal.h"

namespace bloomery {

std::string progress_text(std::int64_t done, std::int64_t total, double seconds,
                          const std::string& unit) {
  if (total <= 0) {
    return concat(done, " ", unit, " in ", clock_text(seconds));
  }
  const double left =
      done > 0 ? seconds / static_cast<double>(done) * static_cast<double>(total - done) : 0;
  return concat(done, " of ", total, " ", unit, ", ", 100 * done / total, " %",
                done > 0 ? ", " + clock_text(left) + " left" : "");
}

ProgressLine::ProgressLine(std::string unit)
    : unit_(std::move(unit)), terminal_(messages_on_terminal()) {}

void ProgressLine::at(std::int64_t done, std::int64_t total) {
  constexpr std::chrono::milliseconds kRedraw(200);
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - drawn_ < kRedraw) {
    return;
  }
  drawn_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // The last column stays free: some terminals wrap when it is written.
  const std::string text = progress_text(done, total, seconds, unit_);
  messages() << "\r" << first_columns(text, terminal_columns(STDERR_FILENO) - 1) << "\x1B[K"
             << std::flush;
}

void ProgressLine::finish() {
  if (shown_) {
    messages() << "\r\x1B[K" << std::flush;
    shown_ = false;
  }
}

}  // namespace bloomery
