#include "apps/launch/jobs/shell_text.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "apps/launch/hosts.h"
#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::string_view kPlain = "_./:,+@%-=^";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool is_plain(char c) { return is_letter_or_digit(c) || kPlain.find(c) != kPlain.npos; }
bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && is_letter_or_digit(word[2]);
}

}  // namespace

std::string shell_word(const std::string& word) {
  return !word.empty() && std::ranges::all_of(word, is_plain) ? word : quoted(word);
}

std::string shell_command(const std::string& first, const std::vector<std::string>& words) {
  std::string text = first;
  for (const std::string& word : words) {
    text += (is_flag(word) ? " \\\n    " : " ") + word;
  }
  return text + "\n";
}

std::string directive_value(const std::string& option, const std::string& value) {
  constexpr std::string_view kMore = "[]#";
  const auto fits = [&](char c) { return is_plain(c) || kMore.find(c) != kMore.npos; };
  check(!value.empty() && std::ranges::all_of(value, fits), option, " '", value,
        "' cannot be written into a job file: give letters, digits and ", kPlain);
  return value;
}

std::string written_by(const std::vector<std::string>& invocation) {
  std::string line = "bloomery launch";
  for (const std::string& word : invocation) {
    line += " " + shell_word(word);
  }
  std::ranges::replace(line, '\n', ' ');
  return "# Written by: " + line + "\n";
}

std::vector<std::string> split_list(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    if (!part.empty()) {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace bloomery
