#include "chat/jinja/string_literal.h"

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

// Up to `most` digits at `at`, which moves behind them.
char32_t read_code(std::string_view text, std::size_t& at, int base, int most) {
  char32_t code = 0;
  for (int i = 0; i < most && at < text.size() && digit_value(text[at]) < base; ++i, ++at) {
    code = code * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(text[at]));
  }
  return code;
}

}  // namespace

std::string unescape(std::string_view text) {
  static constexpr std::string_view kLetters = "\n\\'\"abfnrtv",
                                    kMeanings = "\0\\'\"\a\b\f\n\r\t\v";
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i++];
      continue;
    }
    const char letter = text[++i];
    const int digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (digits != 0 || (letter >= '0' && letter <= '7')) {
      std::size_t end = digits == 0 ? i : i + 1;
      const std::size_t begin = end;
      const char32_t code = read_code(text, end, digits == 0 ? 8 : 16, digits == 0 ? 3 : digits);
      check(digits == 0 || end - begin == static_cast<std::size_t>(digits),
            "a text has a broken \\", letter);
      check(code < 0x110000 && (code < 0xD800 || code > 0xDFFF),
            "a text has an escape that is no character");
      append_utf8(result, code);
      i = end;
    } else if (const std::size_t at = kLetters.find(letter); at == std::string_view::npos) {
      result += '\\';
    } else {
      if (at != 0) result += kMeanings[at];  // a newline behind a backslash is nothing
      ++i;
    }
  }
  return result;
}

}  // namespace bloomery::jinja
