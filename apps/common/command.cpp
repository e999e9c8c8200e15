#include "apps/common/command.h"

#include <algorithm>

#include "apps/common/pager.h"
#include "base/error.h"
#include "base/wrap.h"
#include "config/nearest.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

std::string list(const std::string& program, const std::vector<Command>& commands,
                 std::size_t columns) {
  return concat(
      "usage: ", program, " COMMAND [OPTIONS]\n\n", command_rows(commands, columns), "\n",
      wrapped("", concat("`", program, " COMMAND --help` describes a command."), columns, 0), "\n");
}

}  // namespace

std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows,
                        std::size_t columns) {
  std::size_t indent = 0;
  for (const auto& [name, meaning] : rows) {
    indent = std::max(indent, name.size() + 4);
  }
  const bool narrow = indent + 24 > columns;  // the meaning then stands below the name
  std::string text;
  for (const auto& [name, meaning] : rows) {
    std::string line = "  " + name;
    if (narrow) {
      text += line + "\n" + wrapped("      ", meaning, columns, 6) + "\n";
    } else {
      line.resize(indent, ' ');
      text += wrapped(line, meaning, columns, indent) + "\n";
    }
  }
  return text;
}

std::string command_rows(const std::vector<Command>& commands, std::size_t columns) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : commands) {
    rows.emplace_back(command.name, command.summary);
  }
  return two_columns(rows, columns);
}

int dispatch(const std::string& program, const std::vector<Command>& commands,
             const Arguments& arguments, std::ostream& out,
             const std::function<std::string(std::size_t columns)>& help) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    show_page(out, [&](std::size_t columns) {
      return help ? help(columns) : list(program, commands, columns);
    });
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
    if (arguments[0].starts_with('-')) {
      throw Error(concat("'", arguments[0], "' stands before the command: write `", program,
                         " COMMAND ", arguments[0], "`; `", program,
                         " --help` lists the commands"));
    }
    throw Error(concat("unknown command '", arguments[0], "'", suggestion(arguments[0], names),
                       "\n`", program, " --help` lists the commands"));
  }
  return found->run({arguments.begin() + 1, arguments.end()}, out);
}

}  // namespace bloomery
