#include "samples/tasks/task_text.h"

#include "text/input/python_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {

std::string clean_text(std::string_view text) {
  std::string clean;
  bool after_space = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = utf8_at(text, at);
    const bool space = is_python_space(character.code);
    if (!space) {
      clean.append(text.substr(at, static_cast<std::size_t>(character.length)));
    } else if (!after_space) {
      clean += ' ';
    }
    after_space = space;
    at += static_cast<std::size_t>(character.length);
  }
  for (int pass = 0; pass < 3; ++pass) {
    clean = replace_all(clean, " . ", ". ");
  }
  return clean;
}

std::vector<std::string_view> python_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + (text.substr(end).starts_with("\r\n") ? 2 : 1), text.size()));
  }
  return lines;
}

}  // namespace bloomery
