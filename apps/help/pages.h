// Every command with its options, as the commands themselves list them.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

struct OptionLine {
  std::string flag, takes, help;  // "--dtype", "fp32|bf16" or "INTEGER" or nothing
  std::string of;                 // of another spelling: the flag that help describes

  std::vector<std::string> choices() const;  // the words, where the option takes one of several
};

struct CommandPage {
  std::string path;  // as typed behind the program: "bench ops"; empty: the program itself
  std::string summary;
  std::vector<std::string> usage;  // lines
  std::vector<OptionLine> options;
  std::vector<CommandPage> commands;  // below it

  std::string name() const;  // the last word of the path
};

CommandPage read_pages();

// The page and all below it, each before those below.
std::vector<const CommandPage*> all_pages(const CommandPage& page);

}  // namespace bloomery
