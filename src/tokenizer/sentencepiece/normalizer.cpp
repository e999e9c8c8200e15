#include "tokenizer/sentencepiece/normalizer.h"

#include <algorithm>
#include <cstring>

#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

bool is_ascii(char byte) { return static_cast<signed char>(byte) >= 0; }

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceNormalization& rules,
                                                 bool whitespace_is_suffix, ByteTrie verbatim,
                                                 std::string_view name)
    : charsmap_(rules.charsmap, name),
      verbatim_(std::move(verbatim)),
      space_(rules.escape_whitespaces ? kWordMark : " "),
      dummy_prefix_(rules.add_dummy_prefix && !whitespace_is_suffix),
      dummy_suffix_(rules.add_dummy_prefix && whitespace_is_suffix),
      remove_extra_(rules.remove_extra_whitespaces) {
  for (int byte = 0; byte < 256; ++byte) {
    const char first = static_cast<char>(byte);
    Copied& copied = copied_[static_cast<std::size_t>(byte)];
    copied.bytes[0] = first;
    if (nothing_begins_with(first)) {
      copied.length = 1;
      if (first != ' ') continue;
      copied.length = static_cast<std::uint8_t>(space_.size());
      std::ranges::copy(space_, copied.bytes);
      continue;
    }
    if (first == ' ' || verbatim_.next(ByteTrie::kRoot, first) != ByteTrie::kNowhere) continue;
    bool before_ascii = is_ascii(first) && charsmap_.longest({&first, 1}, 0).length == 0;
    for (int second = 1; second < 128 && before_ascii; ++second) {
      const std::array<char, 2> text = {first, static_cast<char>(second)};
      before_ascii = !charsmap_.leads_on({text.data(), text.size()});
    }
    copied.before_ascii = before_ascii;
    copied.length = before_ascii ? 1 : 0;
  }
}

bool SentencePieceNormalizer::nothing_begins_with(char byte) const {
  return verbatim_.next(ByteTrie::kRoot, byte) == ByteTrie::kNowhere &&
         !charsmap_.leads_on({&byte, 1});
}

SentencePieceNormalizer::Prefix SentencePieceNormalizer::prefix(std::string_view text,
                                                                std::size_t at) const {
  if (const auto match = verbatim_.longest(text, at); match.length > 0) {
    return {match.length, text.substr(at, match.length)};
  }
  if (const Charsmap::Rule rule = charsmap_.longest(text, at); rule.length > 0) {
    return {rule.length, rule.replacement};
  }
  const auto length = static_cast<std::size_t>(utf8_at(text, at).length);
  return {length, text.substr(at, length)};
}

// Appends what is copied as it is, and spaces, and returns where that ends. Without branches but at
// the end: spaces are where one least expects them.
std::size_t SentencePieceNormalizer::copy_plain(std::string_view text, std::size_t at,
                                                bool& after_space, std::string& result) const {
  constexpr std::size_t kRun = 256;
  char run[kRun * sizeof(Copied::bytes)];
  bool after = after_space;
  const bool remove_extra = remove_extra_;
  for (bool goes_on = true; goes_on && at < text.size();) {
    char* to = run;
    for (const std::size_t end = std::min(text.size(), at + kRun); at < end; ++at) {
      const Copied& copied = copied_[static_cast<unsigned char>(text[at])];
      const bool before_other = at + 1 < text.size() && !is_ascii(text[at + 1]);
      goes_on = copied.length > 0 && !(copied.before_ascii && before_other);
      if (!goes_on) break;
      std::memcpy(to, copied.bytes, sizeof copied.bytes);
      const bool is_space = text[at] == ' ';
      to += is_space && after ? 0 : copied.length;
      after = is_space && remove_extra;
    }
    result.append(run, to);
  }
  after_space = after;
  return at;
}

void SentencePieceNormalizer::normalize(std::string_view text, std::string& result) const {
  result.clear();
  std::size_t at = 0;
  while (remove_extra_ && at < text.size()) {
    const Prefix next = prefix(text, at);
    if (next.replacement != " ") break;
    at += next.length;
  }
  if (at == text.size()) return;
  if (dummy_prefix_) result += space_;
  bool after_space = remove_extra_;
  while (at < text.size()) {
    at = copy_plain(text, at, after_space, result);
    if (at == text.size()) break;
    auto [length, replacement] = prefix(text, at);
    while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    if (!replacement.empty()) {
      append_replacing(replacement, ' ', space_, result);
      after_space = remove_extra_ && replacement.ends_with(' ');
    }
    at += length;
  }
  while (remove_extra_ && result.ends_with(space_)) result.resize(result.size() - space_.size());
  if (dummy_suffix_) result += space_;
}

}  // namespace bloomery
