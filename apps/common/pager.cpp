#include "apps/common/pager.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "base/terminal.h"

namespace bloomery {
namespace {

constexpr std::size_t kUsualColumns = 80, kMostColumns = 100;  // longer lines are hard to read

bool on_terminal(const std::ostream& out) {
  return &out == &std::cout && is_terminal(STDOUT_FILENO);
}

std::string pager_command() {
  const char* const asked = std::getenv("PAGER");
  return asked != nullptr ? asked : "less -FRX 2> /dev/null";
}

// A reader who leaves the pager early, or presses Ctrl-C in it, does not end this program.
class IgnoredSignals {
 public:
  IgnoredSignals() = default;
  ~IgnoredSignals() {
    std::signal(SIGPIPE, pipe_);
    std::signal(SIGINT, interrupt_);
  }
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;

 private:
  void (*pipe_)(int) = std::signal(SIGPIPE, SIG_IGN);
  void (*interrupt_)(int) = std::signal(SIGINT, SIG_IGN);
};

// False where there is no such program: nothing was shown.
bool shown_by(const std::string& command, const std::string& text) {
  constexpr int kNoProgram = 127;
  const IgnoredSignals ignored;
  std::FILE* const pipe = popen(command.c_str(), "w");
  if (pipe == nullptr) {
    return false;
  }
  std::fwrite(text.data(), 1, text.size(), pipe);
  const int status = pclose(pipe);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram);
}

}  // namespace

std::size_t output_columns(const std::ostream& out) {
  return on_terminal(out) ? terminal_columns(STDOUT_FILENO)
                          : std::numeric_limits<std::size_t>::max();
}

void show_page(std::ostream& out, const std::function<std::string(std::size_t columns)>& page) {
  if (!on_terminal(out)) {
    out << page(kUsualColumns);
    return;
  }
  const std::string text = page(std::min(terminal_columns(STDOUT_FILENO), kMostColumns));
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const std::string command = pager_command();
  const bool paged = lines >= terminal_rows(STDOUT_FILENO) && !command.empty() &&
                     is_terminal(STDIN_FILENO) && shown_by(command, text);
  if (!paged) {
    out << text;
  }
}

}  // namespace bloomery
