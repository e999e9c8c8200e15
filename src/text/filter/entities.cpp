#include <charconv>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "text/filter/entity_names.h"
#include "text/filter/mojibake.h"
#include "text/filter/repair.h"
#include "text/filter/text_parts.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

using Names = std::unordered_map<std::string, std::string>;

std::string capitals(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return upper;
}

Names read_names() {
  Names names;
  for (std::string_view entry : split_space(kEntityNames)) {
    const bool with_capitals = entry.starts_with('*');
    if (with_capitals) entry.remove_prefix(1);
    const std::size_t sign = entry.find('=');
    const std::string_view name = entry.substr(0, sign);
    std::string value;
    for (const char* at = entry.data() + sign; at < entry.data() + entry.size();) {
      std::uint32_t code = 0;
      at = std::from_chars(at + 1, entry.data() + entry.size(), code, 16).ptr;
      append_utf8(value, code);
    }
    if (with_capitals) names.emplace(capitals(name), value);
    names.emplace(name, std::move(value));
  }
  return names;
}

bool is_never_meant(std::uint32_t code) {
  return code < 9 || code == 0x0B || (code >= 0x0E && code < 0x20) || code == 0x7F ||
         (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFE) == 0xFFFE;
}

// What browsers take a number for; false: it is none.
bool append_number(std::string_view digits, std::string& out) {
  const bool hexadecimal = digits.starts_with('x') || digits.starts_with('X');
  if (hexadecimal) digits.remove_prefix(1);
  std::uint32_t code = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, code, hexadecimal ? 16 : 10);
  if (read.ptr != end || read.ec == std::errc::invalid_argument || code == ';') return false;
  const bool none = read.ec == std::errc::result_out_of_range || code == 0 || code > 0x10FFFF ||
                    (code >= 0xD800 && code <= 0xDFFF);
  if (none) {
    append_utf8(out, kReplacementCharacter);
  } else if (code >= 0x80 && code < 0xA0) {
    append_utf8(out, windows_1252(code));
  } else if (!is_never_meant(code)) {
    append_utf8(out, code);
  }
  return true;
}

// Appends what "&...;" means; false: it is no entity.
bool append_entity(std::string_view body, std::string& out) {
  static const Names names = read_names();
  if (body.starts_with('#')) return append_number(body.substr(1), out);
  const auto found = names.find(std::string(body));
  if (found == names.end()) return false;
  out += found->second;
  return true;
}

}  // namespace

bool decode_entities(std::string& text) {
  constexpr std::size_t kLongest = 26;  // with a #
  if (text.find('&') == text.npos) return false;
  std::string out;
  bool changed = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t sign = std::min(text.find('&', at), text.size());
    out.append(text, at, sign - at);
    at = sign;
    if (at == text.size()) break;
    const std::string_view near = std::string_view(text).substr(at, kLongest + 1);
    const std::size_t end = near.find(';');
    if (end != near.npos && append_entity(near.substr(1, end - 1), out)) {
      at += end + 1;
      changed = true;
    } else {
      out += '&';
      ++at;
    }
  }
  if (changed) text = std::move(out);
  return changed;
}

}  // namespace bloomery
