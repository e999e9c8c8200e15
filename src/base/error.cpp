#include "base/error.h"

#include <cstring>
#include <string_view>

namespace bloomery {

std::string place(const std::source_location& at) {
  const char* slash = std::strrchr(at.file_name(), '/');
  return concat(" (", slash != nullptr ? slash + 1 : at.file_name(), ":", at.line(), ")");
}

// Of "T ns::op(args) [with T = int]::<lambda(auto)>" it is "op": the last name before the first
// parenthesis that opens arguments.
std::string function(const std::source_location& at) {
  const std::string_view whole = at.function_name();
  // "(anonymous namespace)" is written with parentheses of its own.
  std::size_t end = whole.find('(');
  while (end != std::string_view::npos && whole.substr(end).starts_with("(anonymous")) {
    end = whole.find('(', end + 1);
  }
  const std::string_view head = whole.substr(0, end);
  const std::size_t start = head.find_last_of(" :&*>");
  return std::string(start == std::string_view::npos ? head : head.substr(start + 1));
}

}  // namespace bloomery
