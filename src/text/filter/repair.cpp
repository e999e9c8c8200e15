#include "text/filter/repair.h"

#include <algorithm>

#include "text/filter/mojibake.h"
#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// A character that is spelt by others; null: it is not.
const char* spelling(char32_t code) {
  switch (code) {
    case 0x132:
      return "IJ";
    case 0x133:
      return "ij";
    case 0x149:
      return "ʼn";
    case 0x1C4:
      return "DŽ";
    case 0x1C5:
      return "Dž";
    case 0x1C6:
      return "dž";
    case 0x1C7:
      return "LJ";
    case 0x1C8:
      return "Lj";
    case 0x1C9:
      return "lj";
    case 0x1CA:
      return "NJ";
    case 0x1CB:
      return "Nj";
    case 0x1CC:
      return "nj";
    case 0x1F1:
      return "DZ";
    case 0x1F2:
      return "Dz";
    case 0x1F3:
      return "dz";
    case 0xFB00:
      return "ff";
    case 0xFB01:
      return "fi";
    case 0xFB02:
      return "fl";
    case 0xFB03:
      return "ffi";
    case 0xFB04:
      return "ffl";
    case 0xFB05:
      return "ſt";
    case 0xFB06:
      return "st";
    default:
      return nullptr;
  }
}

bool is_removed(char32_t code) {
  return code < 9 || code == 0x0B || (code >= 0x0E && code < 0x20) || code == 0x7F ||
         (code >= 0x206A && code <= 0x206F) || code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFC);
}

// The end of a terminal's escape "\x1B[1;31m" at `at`; `at` when there is none.
std::size_t escape_end(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("\x1B[")) return at;
  const std::size_t end = text.find_first_not_of("0123456789;", at + 2);
  if (end == text.npos) return at;
  const char letter = static_cast<char>(text[end] | 32);
  return letter >= 'a' && letter <= 'z' ? end + 1 : at;
}

void append_simple(std::string& out, char32_t code, std::string_view bytes) {
  if (code >= 0x80 && code <= 0x9F) {
    append_utf8(out, windows_1252(code));
  } else if (code == 0x2028 || code == 0x2029) {
    out += '\n';
  } else if (code == 0x2BC || (code >= 0x2018 && code <= 0x201B)) {
    out += '\'';
  } else if (code >= 0x201C && code <= 0x201F) {
    out += '"';
  } else if (code == 0x3000) {
    out += ' ';
  } else if (code >= 0xFF01 && code <= 0xFFEF) {
    std::string wide(bytes);
    normalize(wide, NormalForm::nfkc);
    out += wide;
  } else if (const char* letters = spelling(code)) {
    out += letters;
  } else {
    out += bytes;
  }
}

std::string simplified(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    const auto length = static_cast<std::size_t>(next.length);
    if (next.code == 0x1B && escape_end(text, at) > at) {
      at = escape_end(text, at);
      continue;
    }
    if (next.code == '\r') {
      out += '\n';
      at += text.substr(at).starts_with("\r\n") ? 2 : 1;
      continue;
    }
    if (!is_removed(next.code)) append_simple(out, next.code, text.substr(at, length));
    at += length;
  }
  return out;
}

// Printable ASCII, tabs and newlines without an entity: nothing to do.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= ' ' && c < 0x7F && c != '&') || c == '\n' || c == '\t' || c == '\f';
  });
}

// A line with its end, or a part of one that is very long.
std::size_t end_of_segment(std::string_view text, std::size_t begin) {
  constexpr std::size_t kMostCharacters = 1'000'000;
  std::size_t end = text.find('\n', begin);
  end = end == text.npos ? text.size() : end + 1;
  if (end - begin <= kMostCharacters) return end;
  std::size_t at = begin;
  for (std::size_t count = 0; at < end && count < kMostCharacters; ++count) {
    at += static_cast<std::size_t>(utf8_at(text, at).length);
  }
  return at;
}

void repair_line(std::string& line, bool entities) {
  constexpr int kMostRounds = 100;  // far more than any text was seen to need
  for (int round = 0; round < kMostRounds; ++round) {
    const std::string start = line;
    if (entities) decode_entities(line);
    line = simplified(encode_utf8(fix_encoding(decode_utf8(line))));
    normalize(line, NormalForm::nfc);
    if (line == start) return;
  }
}

}  // namespace

bool repair_text(std::string& text) {
  std::string out;
  bool entities = true;
  for (std::size_t begin = 0; begin < text.size();) {
    std::string line(text, begin, end_of_segment(text, begin) - begin);
    begin += line.size();
    entities = entities && line.find('<') == line.npos;
    if (!is_plain(line)) repair_line(line, entities);
    out += line;
  }
  if (out == text) return false;
  text = std::move(out);
  return true;
}

}  // namespace bloomery
