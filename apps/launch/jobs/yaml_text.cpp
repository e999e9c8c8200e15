#include "apps/launch/jobs/yaml_text.h"

#include <fmt/format.h>

#include <sstream>

namespace bloomery {

std::string yaml_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      quoted += c == '\n' ? "\\n" : fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string indented(const std::string& lines, int columns) {
  std::string text;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    text += std::string(static_cast<std::size_t>(columns), ' ') + line + "\n";
  }
  return text;
}

std::string without_references(const std::string& word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    text += word[i];
    if (word[i] == '$' && i + 1 < word.size() && word[i + 1] == '(') {
      text += '$';
    }
  }
  return text;
}

}  // namespace bloomery
