// Subcommands: a name, one line of help and a function. bench, data and checkpoint have commands
// of their own below them, so the same dispatch serves at every depth.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
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

// Names and what they mean, in two columns of lines that fit `columns`.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows,
                        std::size_t columns);
// The commands with their summaries, in that form.
std::string command_rows(const std::vector<Command>& commands, std::size_t columns);

// Runs the command named by the first argument with the rest. `program` is what was typed so far
// ("bloomery bench"). Without arguments, or with --help, shows `help`, by default the list of the
// commands; with --help=list writes a line for each, name and summary with two tabs between. An
// unknown name is an Error that suggests the nearest.
int dispatch(const std::string& program, const std::vector<Command>& commands,
             const Arguments& arguments, std::ostream& out,
             const std::function<std::string(std::size_t columns)>& help = {});

}  // namespace bloomery
