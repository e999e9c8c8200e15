#include "tokenizer/sentencepiece/charsmap.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Real rules have some twenty bytes; the limit keeps a damaged array from running in circles.
constexpr std::size_t kLongestRule = 256;

// A unit of the double array: the byte that leads to it (bit 31 marks a value instead), whether a
// key ends here, and how far away its children are.
constexpr std::uint32_t kValueBit = 1U << 31;
std::uint32_t label(std::uint32_t unit) { return unit & (kValueBit | 0xFF); }
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

}  // namespace

Charsmap::Charsmap(std::string_view blob, std::string_view name) {
  if (blob.empty()) return;
  check(blob.size() > 4, name, ": the normalisation rules have ", blob.size(), " bytes; too few");
  const std::uint32_t size = little_endian(blob, 0);
  check(size > 0 && size % 4 == 0 && size <= blob.size() - 4, name,
        ": the normalisation rules name a table of ", size, " bytes; they have ", blob.size());
  units_.resize(size / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = little_endian(blob, 4 + i * 4);
  replacements_ = blob.substr(4 + size);
  replacements_.push_back('\0');
  check(is_utf8(replacements_), name,
        ": the normalisation rules hold text that is not valid UTF-8");
}

// Calls found(length, offset of the replacement) for each rule that begins text[at...], the
// shortest first, until it returns false.
template <class Found>
void Charsmap::search(std::string_view text, std::size_t at, Found found) const {
  if (units_.empty()) return;
  std::size_t node = offset(units_[0]);
  const std::size_t end = std::min(text.size(), at + kLongestRule);
  for (std::size_t i = at; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) return;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit) || node >= units_.size()) continue;
    if (i + 1 < text.size() && (text[i + 1] & 0xC0) == 0x80) continue;  // inside a character
    if (!found(i + 1 - at, units_[node] & ~kValueBit)) return;
  }
}

std::string_view Charsmap::replacement(std::uint32_t offset) const {
  if (offset >= replacements_.size()) return {};
  const std::string_view text = replacements_.c_str() + offset;
  // A damaged table may point into the middle of a character.
  return is_utf8(text) ? text : std::string_view();
}

Charsmap::Rule Charsmap::longest(std::string_view text, std::size_t at) const {
  Rule rule{0, {}};
  std::uint32_t offset = 0;
  search(text, at, [&](std::size_t length, std::uint32_t value) {
    rule.length = length;
    offset = value;
    return true;
  });
  if (rule.length > 0) rule.replacement = replacement(offset);
  return rule;
}

Charsmap::Rule Charsmap::shortest(std::string_view text) const {
  Rule rule{0, {}};
  search(text, 0, [&](std::size_t length, std::uint32_t value) {
    rule = {length, replacement(value)};
    return false;
  });
  return rule;
}

bool Charsmap::leads_on(std::string_view text) const {
  if (units_.empty()) return false;
  std::size_t node = offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) return false;
    node ^= offset(units_[node]);
  }
  return true;
}

}  // namespace bloomery
