// JSON strings to write.
#pragma once

#include <string_view>

#include "base/json_scan.h"

namespace bloomery {

// A JSON string with quotes; characters beyond ASCII stay as they are. `To` has append and
// push_back, as std::string has.
template <class To>
void append_json_string(To& to, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  to.push_back('"');
  for (std::size_t at = 0;;) {
    const std::size_t end = end_of_plain(text, at);
    to.append(text.substr(at, end - at));
    if (end == text.size()) break;
    const char c = text[end];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20) {
      to.push_back('\\');
      to.push_back(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      to.push_back('\\');
      to.push_back(c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    } else {
      to.append("\\u00");
      to.push_back(kDigits[byte >> 4]);
      to.push_back(kDigits[byte & 15]);
    }
    at = end + 1;
  }
  to.push_back('"');
}

}  // namespace bloomery
