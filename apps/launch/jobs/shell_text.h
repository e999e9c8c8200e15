// Text of shell scripts and of the directives of schedulers.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

// The word as a shell reads it back, without quotes where it needs none.
std::string shell_word(const std::string& word);

// A command, a flag with its values per line. `first` and `words` are shell text already.
std::string shell_command(const std::string& first, const std::vector<std::string>& words);

// The value of an option as a directive takes it: an Error for characters that end or divide it.
std::string directive_value(const std::string& option, const std::string& value);

// Lines of a comment that repeat the command that wrote the file.
std::string written_by(const std::vector<std::string>& invocation);

std::vector<std::string> split_list(const std::string& text, char separator);

}  // namespace bloomery
