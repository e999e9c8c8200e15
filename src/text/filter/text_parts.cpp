#include "text/filter/text_parts.h"

#include <algorithm>
#include <array>

#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Python's str.isspace: Unicode's white space and four separators of ASCII.
bool is_space(char32_t code) {
  return char_class(code) == CharClass::white_space || (code >= 0x1C && code <= 0x1F);
}

std::size_t length_at(std::string_view text, std::size_t at) {
  return static_cast<std::size_t>(utf8_at(text, at).length);
}

std::size_t start_of_last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

bool ends_line(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

// Pairs of first and last: Unicode's Sentence_Terminal.
constexpr char32_t kSentenceEnds[] = {
    0x21,    0x21,    0x2E,    0x2E,    0x3F,    0x3F,    0x589,   0x589,   0x61D,   0x61F,
    0x6D4,   0x6D4,   0x700,   0x702,   0x7F9,   0x7F9,   0x837,   0x837,   0x839,   0x839,
    0x83D,   0x83E,   0x964,   0x965,   0x104A,  0x104B,  0x1362,  0x1362,  0x1367,  0x1368,
    0x166E,  0x166E,  0x1735,  0x1736,  0x17D4,  0x17D6,  0x17D9,  0x17DA,  0x1803,  0x1803,
    0x1809,  0x1809,  0x1944,  0x1945,  0x1AA8,  0x1AAB,  0x1B5A,  0x1B5B,  0x1B5E,  0x1B5F,
    0x1B7D,  0x1B7E,  0x1C3B,  0x1C3C,  0x1C7E,  0x1C7F,  0x203C,  0x203D,  0x2047,  0x2049,
    0x2E2E,  0x2E2E,  0x2E3C,  0x2E3C,  0x2E53,  0x2E54,  0x3002,  0x3002,  0xA4FF,  0xA4FF,
    0xA60E,  0xA60F,  0xA6F3,  0xA6F3,  0xA6F7,  0xA6F7,  0xA876,  0xA877,  0xA8CE,  0xA8CF,
    0xA92F,  0xA92F,  0xA9C8,  0xA9C9,  0xAA5D,  0xAA5F,  0xAAF0,  0xAAF1,  0xABEB,  0xABEB,
    0xFE52,  0xFE52,  0xFE56,  0xFE57,  0xFF01,  0xFF01,  0xFF0E,  0xFF0E,  0xFF1F,  0xFF1F,
    0xFF61,  0xFF61,  0x10A56, 0x10A57, 0x10F55, 0x10F59, 0x10F86, 0x10F89, 0x11047, 0x11048,
    0x110BE, 0x110C1, 0x11141, 0x11143, 0x111C5, 0x111C6, 0x111CD, 0x111CD, 0x111DE, 0x111DF,
    0x11238, 0x11239, 0x1123B, 0x1123C, 0x112A9, 0x112A9, 0x1144B, 0x1144C, 0x115C2, 0x115C3,
    0x115C9, 0x115D7, 0x11641, 0x11642, 0x1173C, 0x1173E, 0x11944, 0x11944, 0x11946, 0x11946,
    0x11A42, 0x11A43, 0x11A9B, 0x11A9C, 0x11C41, 0x11C42, 0x11EF7, 0x11EF8, 0x11F43, 0x11F44,
    0x16A6E, 0x16A6F, 0x16AF5, 0x16AF5, 0x16B37, 0x16B38, 0x16B44, 0x16B44, 0x16E98, 0x16E98,
    0x1BC9F, 0x1BC9F, 0x1DA88, 0x1DA88};

constexpr std::u32string_view kMarks =
    U"«´»–—’“”„…∶━►、。〈〉《》「」【】！％（），．１：；？～";  // beyond ASCII, sorted

}  // namespace

bool ends_sentence(char32_t code) {
  const auto* after = std::ranges::upper_bound(kSentenceEnds, code);
  const auto index = after - std::begin(kSentenceEnds);
  return index % 2 == 1 || (index > 0 && kSentenceEnds[index - 1] == code);
}

bool is_punctuation_mark(char32_t code) {
  if (code < 0x80) {
    const bool alphanumeric =
        (code >= '0' && code <= '9') || ((code | 32) >= 'a' && (code | 32) <= 'z');
    return !alphanumeric && code != ' ' && code != '\t' && code != '\n';
  }
  return code < 0xA0 || std::ranges::binary_search(kMarks, code) || ends_sentence(code);
}

std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

std::string_view trim_left(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_space(utf8_at(text, at).code)) at += length_at(text, at);
  return text.substr(at);
}

std::string_view trim_right(std::string_view text) {
  while (!text.empty() && is_space(last_character(text))) {
    text = text.substr(0, start_of_last(text));
  }
  return text;
}

std::string_view trim(std::string_view text) { return trim_right(trim_left(text)); }

char32_t last_character(std::string_view text) { return utf8_at(text, start_of_last(text)).code; }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    const std::size_t end = at;
    at += static_cast<std::size_t>(next.length);
    if (!ends_line(next.code)) continue;
    if (next.code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, end - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::vector<std::string_view> split_at_newlines(std::string_view text, std::size_t least) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at)) {
    const std::size_t end = std::min(text.find_first_not_of('\n', at), text.size());
    if (end - at >= least) {
      parts.push_back(text.substr(begin, at - begin));
      begin = end;
    }
    at = end;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> split_space(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(utf8_at(text, at).code)) {
      at += length_at(text, at);
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && !is_space(utf8_at(text, at).code)) at += length_at(text, at);
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

std::int64_t count_of(std::string_view text, std::string_view part) {
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

}  // namespace bloomery
