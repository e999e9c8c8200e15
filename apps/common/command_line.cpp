#include "apps/common/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <sstream>

#include "apps/common/pager.h"
#include "base/error.h"
#include "base/terminal.h"
#include "base/wrap.h"

namespace bloomery {
namespace {

constexpr const char* kFooter =
    "A flag --NAME that takes no value has an opposite, --no-NAME.\n"
    "Every command takes -q (warnings and errors only) and -v (more detail).\n";

// Blanks within quotes, held until a line is cut, so that it is not cut there.
constexpr char kHeldBlank = '\x01';
std::string with_held_blanks(std::string text) {
  bool quoted = false;
  for (char& c : text) {
    quoted = quoted != (c == '"');
    c = quoted && c == ' ' ? kHeldBlank : c;
  }
  return text;
}

// Examples, which stand behind two blanks, stay commands of a shell when they are cut into lines.
std::string fitted_usage(const std::string& usage, std::size_t columns) {
  constexpr std::size_t kBlanks = 2, kForBackslash = 2;
  std::string text;
  std::istringstream lines(usage);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(' ') != kBlanks || line.size() <= columns) {
      text += wrapped_lines(line, columns) + "\n";
      continue;
    }
    std::istringstream pieces(
        wrapped("  ", with_held_blanks(line.substr(kBlanks)), columns - kForBackslash, 4));
    std::string example;
    for (std::string piece; std::getline(pieces, piece);) {
      std::ranges::replace(piece, kHeldBlank, ' ');
      example += (example.empty() ? "" : " \\\n") + piece;
    }
    text += example + "\n";
  }
  return text;
}

}  // namespace

bool print_help(const OptionTable& table, const Arguments& arguments, std::ostream& out,
                const std::string& usage) {
  if (!wants_help(arguments)) {
    return false;
  }
  if (std::ranges::find(arguments, kHelpAsList) == arguments.end()) {
    show_page(out, [&](std::size_t columns) {
      return concat(fitted_usage(usage, columns), "\n", table.help(columns), "\n",
                    wrapped_lines(kFooter, columns));
    });
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
    messages() << wrapped_lines(concat("note: ", note), message_columns()) << '\n';
  }
  Log(0, 1, LogLevel::debug).write(LogLevel::debug, "options\n" + table.text());
  return true;
}

void refuse_to_overwrite(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    check(!std::filesystem::exists(file), file.string(),
          " exists already; give --overwrite to replace it, or another name for the output");
  }
}

std::ostream& messages() {
  static std::ostream nowhere(nullptr);
  return least_logged() > LogLevel::info ? nowhere : std::cerr;
}

std::size_t message_columns() {
  return messages_on_terminal() ? terminal_columns(STDERR_FILENO)
                                : std::numeric_limits<std::size_t>::max();
}

bool messages_on_terminal() {
  return least_logged() <= LogLevel::info && is_terminal(STDERR_FILENO);
}

}  // namespace bloomery
