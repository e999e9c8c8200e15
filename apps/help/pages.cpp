#include "apps/help/pages.h"

#include <sstream>

#include "apps/bloomery.h"
#include "base/error.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

std::vector<std::string> divided(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    parts.push_back(part);
  }
  return parts;
}

void read(CommandPage& page) {
  if (page.path == "help" || page.path == "completion" || page.path == "man") {
    return;  // these would ask for each other
  }
  Arguments arguments = divided(page.path, ' ');
  arguments.emplace_back(kHelpAsList);
  std::ostringstream out;
  dispatch_bloomery(arguments, out);
  for (const std::string& line : divided(out.str(), '\n')) {
    const std::vector<std::string> parts = divided(line, '\t');
    if (line.starts_with("--")) {
      page.options.push_back(
          {parts.at(0), parts.at(1), parts.at(2), parts.size() > 3 ? parts[3] : ""});
    } else if (parts.at(0) == kUsageLine) {
      page.usage.push_back(parts.size() > 2 ? parts[2] : "");
    } else {
      CommandPage below;
      below.path = page.path.empty() ? parts[0] : page.path + " " + parts[0];
      below.summary = parts.at(2);
      read(below);
      page.commands.push_back(std::move(below));
    }
  }
}

}  // namespace

std::vector<std::string> OptionLine::choices() const {
  return takes.find('|') == takes.npos ? std::vector<std::string>() : divided(takes, '|');
}

std::string CommandPage::name() const { return path.substr(path.rfind(' ') + 1); }

CommandPage read_pages() {
  CommandPage program;
  read(program);
  return program;
}

std::vector<const CommandPage*> all_pages(const CommandPage& page) {
  std::vector<const CommandPage*> all = {&page};
  for (const CommandPage& below : page.commands) {
    for (const CommandPage* one : all_pages(below)) {
      all.push_back(one);
    }
  }
  return all;
}

}  // namespace bloomery
