// What every command with options does first, and where it talks to people.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "config/option_table.h"

namespace bloomery {

// Help, where it is asked for: `usage`, which ends in a line break, and the options. True when it
// was printed.
bool print_help(const OptionTable& table, const Arguments& arguments, std::ostream& out,
                const std::string& usage);

// Reads the arguments into the table, with --config, and says its notes. `problems` are rules
// across options, asked for when each by itself is good. False when help was printed instead: the
// command is done.
bool read_options(OptionTable& table, const Arguments& arguments, std::ostream& out,
                  const std::string& usage,
                  const std::function<std::vector<std::string>()>& problems = {});

// An Error that names --overwrite when one of the files is there already.
void refuse_to_overwrite(const std::vector<std::filesystem::path>& files);

// Standard error for progress and summaries; with -q what is written there is lost.
std::ostream& messages();
// True when messages() reach a terminal, where a line can be redrawn.
bool messages_on_terminal();
// The columns of that terminal; elsewhere lines have no limit.
std::size_t message_columns();

}  // namespace bloomery
