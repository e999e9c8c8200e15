// What the commands of this folder share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/command_line.h"

namespace bloomery {

// Reads the arguments of a command that takes `least` to `most` words and nothing else but
// --overwrite. False when help was printed instead.
struct Words {
  std::vector<std::string> words;
  bool overwrite = false;
};
bool read_words(const Arguments& arguments, const std::string& usage, std::size_t least,
                std::size_t most, Words& words, std::ostream& out);

// Every line that is not blank, of files one after another, packed or not.
void for_each_line(const std::vector<std::string>& files,
                   const std::function<void(std::string_view)>& visit);

// Errors unless the file may be written.
void check_output(const std::string& path, bool overwrite);

}  // namespace bloomery
