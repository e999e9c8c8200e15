#include "tokenizer/hf/filter.h"

#include "tokenizer/hf/char_classes.h"

namespace bloomery::hf {

std::size_t space_end(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Char next = utf8_at(text, at);
    if (!is_space(next.code)) break;
    at += static_cast<std::size_t>(next.length);
  }
  return at;
}

std::size_t space_begin(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t at = end - 1;
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_space(utf8_at(text, at).code)) break;
    end = at;
  }
  return end;
}

}  // namespace bloomery::hf
