// What a user says about lines to read: the same words for every tool that reads text.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "text/input/line_format.h"

namespace bloomery {

class OptionTable;

struct LineOptions {
  std::vector<std::string> input;
  LineFormat input_format = LineFormat::automatic;
  std::vector<std::string> json_keys = {"text"};
  std::int64_t max_document_bytes = 32 << 20;
  bool strict = false;
  int workers = 0;
  std::int64_t log_interval = 1000;
};

// The section "input"; `keys` says what the strings of --json-keys are for.
void describe_lines(OptionTable& table, LineOptions& options, const std::string& keys);
// --workers and --log-interval, for a section of the caller's.
void describe_workers(OptionTable& table, LineOptions& options);

// Threads to work with: --workers, but no more than there are cores or than readers can feed.
int num_workers(const LineOptions& options);

// Where a long pass over lines talks to people.
struct LineCaller {
  std::ostream& messages;
  bool terminal = false;        // messages go to a terminal
  std::function<bool()> go_on;  // asked ten times a second or more; false ends the run
};

}  // namespace bloomery
