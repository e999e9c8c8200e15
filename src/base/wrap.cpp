#include "base/wrap.h"

#include <algorithm>

#include "base/terminal.h"

namespace bloomery {
namespace {

// Where the lines that follow a wrapped line start.
std::size_t hanging_indent(std::string_view line, std::size_t columns) {
  constexpr std::string_view kUsage = "usage: ";
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t indent = line.starts_with(kUsage) ? kUsage.size() : blanks;
  return std::min(indent + (line.starts_with(kUsage) || blanks > 0 ? 2 : 0), columns / 2);
}

std::string wrapped_line(std::string_view line, std::size_t columns) {
  if (columns_of(line) <= columns) {
    return std::string(line);
  }
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  const std::string start(std::min(blanks, columns / 2), ' ');
  return wrapped(start, line.substr(blanks), columns, hanging_indent(line, columns));
}

}  // namespace

std::string wrapped(std::string line, std::string_view text, std::size_t columns,
                    std::size_t indent) {
  std::string result;
  std::size_t used = columns_of(line);
  bool fresh = line.empty() || line.back() == ' ';  // no word that the next must keep apart from
  bool has_word = line.find_first_not_of(' ') != std::string::npos;
  result = std::move(line);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t width = columns_of(word);
    if (has_word && used + (fresh ? 0 : 1) + width > columns) {
      result.erase(result.find_last_not_of(' ') + 1);
      result += "\n" + std::string(indent, ' ');
      used = indent;
      fresh = true;
    }
    result += fresh ? "" : " ";
    result += word;
    used += (fresh ? 0 : 1) + width;
    fresh = false;
    has_word = true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string wrapped_lines(std::string_view text, std::size_t columns) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += wrapped_line(text.substr(0, end), columns);
    if (end < text.size()) {
      result += '\n';
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace bloomery
