#include "apps/common/command.h"

#include <algorithm>

#include "base/error.h"
#include "config/nearest.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

void list(const std::string& program, const std::vector<Command>& commands, std::ostream& out) {
  out << "usage: " << program << " COMMAND [OPTIONS]\n\n";
  std::size_t width = 0;
  for (const Command& command : commands) {
    width = std::max(width, command.name.size());
  }
  for (const Command& command : commands) {
    out << "  " << command.name << std::string(width + 2 - command.name.size(), ' ')
        << command.summary << '\n';
  }
  out << "\n`" << program << " COMMAND --help` describes a command.\n";
}

}  // namespace

int dispatch(const std::string& program, const std::vector<Command>& commands,
             const Arguments& arguments, std::ostream& out) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    list(program, commands, out);
    return 0;
  }
  if (arguments[0] == kHelpAsList) {
    for (const Command& command : commands) {
      out << command.name << "\t\t" << command.summary << '\n';
    }
    return 0;
  }
  const auto found = std::ranges::find(commands, arguments[0], &Command::name);
  if (found == commands.end()) {
    std::vector<std::string> names;
    for (const Command& command : commands) {
      names.push_back(command.name);
    }
    throw Error(concat("unknown command '", arguments[0], "'", suggestion(arguments[0], names),
                       "\n`", program, " --help` lists the commands"));
  }
  return found->run({arguments.begin() + 1, arguments.end()}, out);
}

}  // namespace bloomery
