#include "apps/common/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "base/terminal.h"

namespace bloomery {

bool print_help(const OptionTable& table, const Arguments& arguments, std::ostream& out,
                const std::string& usage) {
  if (!wants_help(arguments)) {
    return false;
  }
  if (std::ranges::find(arguments, kHelpAsList) == arguments.end()) {
    out << usage << '\n' << table.help() << "\nEvery command takes -q (say less) and -v (more).\n";
    return true;
  }
  std::istringstream lines(usage);
  for (std::string line; std::getline(lines, line);) {
    out << kUsageLine << "\t\t" << line << '\n';
  }
  out << table.list();
  return true;
}

bool read_options(OptionTable& table, const Arguments& arguments, std::ostream& out,
                  const std::string& usage,
                  const std::function<std::vector<std::string>()>& problems) {
  table.take_config_files();
  if (print_help(table, arguments, out, usage)) {
    return false;
  }
  table.read_flags(arguments);
  table.finish(problems && table.problems().empty() ? problems() : std::vector<std::string>());
  for (const std::string& note : table.notes()) {
    messages() << "note: " << note << '\n';
  }
  Log(0, 1, LogLevel::debug).write(LogLevel::debug, "options\n" + table.text());
  return true;
}

void refuse_to_overwrite(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    check(!std::filesystem::exists(file), file.string(),
          " is there already; give --overwrite to replace it, or another name for the output");
  }
}

std::ostream& messages() {
  static std::ostream nowhere(nullptr);
  return least_logged() > LogLevel::info ? nowhere : std::cerr;
}

bool messages_on_terminal() {
  return least_logged() <= LogLevel::info && is_terminal(STDERR_FILENO);
}

}  // namespace bloomery
