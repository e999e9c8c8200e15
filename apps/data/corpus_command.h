// What the commands that clean corpora have in common.
#pragma once

#include <string>
#include <vector>

#include "apps/common/command_line.h"
#include "text/lines/line_options.h"

namespace bloomery {

// Progress and messages to standard error; signals end the run. One StopSignals must live.
LineCaller line_caller();

// What is wrong with options of which only one key is wanted.
std::vector<std::string> one_key(const LineOptions& options);

// Says that a signal ended it and how to go on; the exit code.
int stopped_by_signal();

// Says that an earlier run of the same command made the outputs.
void log_finished(const std::string& output);

}  // namespace bloomery
