// Standard error as a person sees it: how much is said there, and whether a terminal shows it.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/log.h"

namespace bloomery {

// While it lives, the log writes lines of this level and above: -q and -v of the program. There is
// one standard error, so there is one such setting in a process.
class LogThreshold {
 public:
  explicit LogThreshold(LogLevel least);
  ~LogThreshold();
  LogThreshold(const LogThreshold&) = delete;
  LogThreshold& operator=(const LogThreshold&) = delete;

 private:
  LogLevel before_;
};
LogLevel least_logged();

// A terminal that can redraw a line; `dumb` ones cannot.
bool is_terminal(int descriptor);
// How wide and how high it is; 80 and 24 where it does not say so.
std::size_t terminal_columns(int descriptor);
std::size_t terminal_rows(int descriptor);

// Columns that a text takes there: ideographs, Hangul, full-width forms and emoji two, marks that
// combine with the character before them none.
std::size_t columns_of(std::string_view text);
// The longest beginning of a text that takes at most `columns`.
std::string_view first_columns(std::string_view text, std::size_t columns);

// False when the environment asks for none (https://no-color.org).
bool wants_colour();

}  // namespace bloomery
