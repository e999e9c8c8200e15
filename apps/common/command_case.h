// Running the program in a test, as a user would.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "apps/bloomery.h"
#include "base/error.h"

namespace bloomery {

struct Outcome {
  int code;
  std::string out, errors;
  bool says(const std::string& text) const {
    return out.find(text) != std::string::npos || errors.find(text) != std::string::npos;
  }
};

// Runs `bloomery ARGUMENTS`.
inline Outcome run_command(const Arguments& arguments) {
  std::ostringstream out, errors;
  const int code = run_bloomery(arguments, out, errors);
  return {code, out.str(), errors.str()};
}

// The same; returns output and errors, and throws, which fails a test, at another exit code.
inline std::string expect_command(const Arguments& arguments, int code = kFinished) {
  const Outcome outcome = run_command(arguments);
  if (outcome.code != code) {
    throw std::runtime_error(concat("exit code ", outcome.code, " instead of ", code, ": ",
                                    outcome.out, outcome.errors));
  }
  return outcome.out + outcome.errors;
}

}  // namespace bloomery
