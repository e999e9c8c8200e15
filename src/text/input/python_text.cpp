#include "text/input/python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Calls body(begin, end) for each maximal run without white space.
template <class Body>
void for_each_word(std::string_view text, Body&& body) {
  std::size_t begin = text.npos, at = 0;
  while (at < text.size()) {
    const Utf8Char character = utf8_at(text, at);
    if (!is_python_space(character.code)) {
      begin = std::min(begin, at);
    } else if (begin != text.npos) {
      body(begin, at);
      begin = text.npos;
    }
    at += static_cast<std::size_t>(character.length);
  }
  if (begin != text.npos) {
    body(begin, text.size());
  }
}

}  // namespace

bool is_python_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char first = utf8_at(text, 0);
    if (!is_python_space(first.code)) {
      break;
    }
    text.remove_prefix(static_cast<std::size_t>(first.length));
  }
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while ((static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
      --start;  // to the first byte of the last character
    }
    if (!is_python_space(utf8_at(text, start).code)) {
      break;
    }
    text = text.substr(0, start);
  }
  return text;
}

std::int64_t count_words(std::string_view text) {
  std::int64_t count = 0;
  for_each_word(text, [&](std::size_t, std::size_t) { ++count; });
  return count;
}

std::string_view last_word(std::string_view text) {
  std::string_view last;
  for_each_word(
      text, [&](std::size_t begin, std::size_t end) { last = text.substr(begin, end - begin); });
  return last;
}

std::int64_t count_pieces(std::string_view text) { return std::ranges::count(text, ' ') + 1; }

std::string python_number(double value) {
  char digits[64];
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto [end, error] =
      std::to_chars(digits, digits + sizeof(digits), value,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string text(digits, end);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    result += text.substr(at, found - at);
    if (found == text.npos) {
      return result;
    }
    result += to;
    at = found + from.size();
  }
}

}  // namespace bloomery
