#include "text/filter/word_text.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "text/filter/word_tables.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

bool is_in(std::span<const CodeRange> ranges, char32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &CodeRange::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

}  // namespace

WordText WordBuffer::read(std::string_view text) {
  codes_.clear();
  starts_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    codes_.push_back(next.code);
    starts_.push_back(at);
    at += static_cast<std::size_t>(next.length);
  }
  starts_.push_back(text.size());
  return {text, codes_.data(), starts_.data(), codes_.size()};
}

bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }

bool is_alpha(char32_t code) {
  if (code < 0x80) return (code | 32) >= 'a' && (code | 32) <= 'z';
  return is_in(kAlpha, code);
}
bool is_lower(char32_t code) { return is_alpha(code) && char_class(code) != CharClass::uppercase; }
bool is_upper(char32_t code) { return is_alpha(code) && char_class(code) != CharClass::lowercase; }
bool is_icon(char32_t code) { return code >= 0x80 && is_in(kIcon, code); }

}  // namespace bloomery
