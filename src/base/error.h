// Errors that a person can act on. `check` throws Error for faults of the user, of a file or of
// the environment; programmer faults use assert.
#pragma once

#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>

namespace bloomery {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The parts written one after another, as with <<.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Throws Error with the parts joined to one message: what is wrong, the values, what to do next.
template <class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    throw Error(concat(parts...));
  }
}

// " (file.cpp:123)", for errors of vendor libraries, where the place matters.
std::string place(const std::source_location& at);
// The name of the function there, without its type and namespaces.
std::string function(const std::source_location& at);

}  // namespace bloomery
