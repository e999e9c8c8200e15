// The program: its commands and its exit codes.
#pragma once

#include <ostream>

#include "apps/common/command.h"

namespace bloomery {

enum ExitCode : int {
  kFinished = 0,
  kFailed = 1,
  kBadInput = 2,
  kStoppedEarly = 75,  // with a good checkpoint: run again
};

// Whether a word is -q, -v, --quiet or --verbose, which every command takes.
bool is_verbosity(const std::string& word);
// Whether the first word names a command of ours.
bool is_bloomery_command(const Arguments& arguments);
// "; did you mean NAME?" of our commands, or nothing when none is near.
std::string suggested_command(const std::string& word);

// Runs a command; bad input is an Error.
int dispatch_bloomery(const Arguments& arguments, std::ostream& out);

// Runs `bloomery ARGUMENTS` and returns its exit code; never throws.
int run_bloomery(const Arguments& arguments, std::ostream& out, std::ostream& errors) noexcept;

}  // namespace bloomery
