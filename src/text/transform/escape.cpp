#include "text/transform/escape.h"

#include "tokenizer/utf8.h"

namespace bloomery {

std::string escape_invalid_utf8(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text[0]);
    out.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace bloomery
