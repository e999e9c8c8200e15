#include "base/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace bloomery {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) == 1 && variable("TERM") != "dumb"; }

bool wants_colour() { return variable("NO_COLOR").empty(); }

}  // namespace bloomery
