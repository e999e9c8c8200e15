#include "base/json_scan.h"

#include <bit>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighs = 0x8080808080808080;

// High bits of the bytes of `word` that are zero. Above a zero byte others may be marked falsely,
// so only the lowest mark counts.
constexpr std::uint64_t zeros(std::uint64_t word) { return (word - kOnes) & ~word & kHighs; }

// As above for bytes that end a plain run.
constexpr std::uint64_t marks(std::uint64_t word) {
  const std::uint64_t controls = (word - kOnes * 0x20) & ~word & kHighs;
  return controls | zeros(word ^ kOnes * '"') | zeros(word ^ kOnes * '\\');
}

bool ends_plain(char byte) {
  return byte == '"' || byte == '\\' || static_cast<unsigned char>(byte) < 0x20;
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') {
    return digit - '0';
  }
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Four hexadecimal digits; -1 when they are not there.
int hex_unit(std::string_view text, std::size_t at) {
  if (text.size() < at + 4) {
    return -1;
  }
  int unit = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) {
      return -1;
    }
    unit = unit << 4 | digit;
  }
  return unit;
}

JsonEscape unicode_escape(std::string_view text, std::size_t at) {
  const int first = hex_unit(text, at + 2);
  if (first < 0 || (first >= 0xDC00 && first < 0xE000)) {
    return {};
  }
  if (first < 0xD800 || first >= 0xE000) {
    return {static_cast<char32_t>(first), 6};
  }
  if (text.substr(at + 6, 2) != "\\u") {
    return {};
  }
  const int second = hex_unit(text, at + 8);
  if (second < 0xDC00 || second >= 0xE000) {
    return {};
  }
  return {static_cast<char32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), 12};
}

}  // namespace

std::size_t end_of_plain(std::string_view text, std::size_t at) {
  if constexpr (std::endian::native == std::endian::little) {
    std::uint64_t word = 0;
    for (; at + sizeof word <= text.size(); at += sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      const std::uint64_t found = marks(word);
      if (found != 0) {
        return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
      }
    }
  }
  while (at < text.size() && !ends_plain(text[at])) {
    ++at;
  }
  return at;
}

void check_json_depth(std::string_view json, int most) {
  int depth = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char byte = json[at];
    if (byte == '"') {
      for (++at; at < json.size() && json[at] != '"'; ++at) {
        at += json[at] == '\\' ? 1 : 0;
      }
    } else if (byte == '[' || byte == '{') {
      check(++depth <= most, "the JSON is nested more than ", most, " levels deep at byte ", at,
            ": so many lists and objects in each other are not read");
    } else if (byte == ']' || byte == '}') {
      --depth;
    }
  }
}

JsonEscape read_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) {
    return {};
  }
  switch (text[at + 1]) {
    case '"':
    case '\\':
    case '/':
      return {static_cast<char32_t>(text[at + 1]), 2};
    case 'b':
      return {'\b', 2};
    case 'f':
      return {'\f', 2};
    case 'n':
      return {'\n', 2};
    case 'r':
      return {'\r', 2};
    case 't':
      return {'\t', 2};
    case 'u':
      return unicode_escape(text, at);
    default:
      return {};
  }
}

}  // namespace bloomery
