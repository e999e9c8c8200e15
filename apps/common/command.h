// Subcommands: a name, one line of help and a function. bench, data and checkpoint have commands
// of their own below them, so the same dispatch serves at every depth.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace bloomery {

// Starts lines of --help=list that are usage rather than a command or an option.
inline constexpr const char* kUsageLine = "usage";

using Arguments = std::vector<std::string>;

// Where a command writes its results; messages and progress go to the log (standard error).
struct Command {
  std::string name, summary;
  int (*run)(const Arguments& arguments, std::ostream& out);
};

// Runs the command named by the first argument with the rest. `program` is what was typed so far
// ("bloomery bench"). Without arguments, or with --help, lists the commands; with --help=list a
// line for each, name and summary with two tabs between. An unknown name is an Error that suggests
// the nearest.
int dispatch(const std::string& program, const std::vector<Command>& commands,
             const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
