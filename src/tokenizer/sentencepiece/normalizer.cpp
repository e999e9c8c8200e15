#include "tokenizer/sentencepiece/normalizer.h"

#include <array>

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
      remove_extra_(rules.remove_extra_whitespaces),
      space_is_plain_(nothing_begins_with(' ')) {
  for (int byte = 0; byte < 256; ++byte) {
    const char first = static_cast<char>(byte);
    if (first == ' ' || verbatim_.next(ByteTrie::kRoot, first) != ByteTrie::kNowhere) continue;
    plain_[byte] = nothing_begins_with(first);
    bool before_ascii = is_ascii(first) && charsmap_.longest({&first, 1}, 0).length == 0;
    for (int second = 1; second < 128 && before_ascii; ++second) {
      const std::array<char, 2> text = {first, static_cast<char>(second)};
      before_ascii = !charsmap_.leads_on({text.data(), text.size()});
    }
    plain_before_ascii_[byte] = before_ascii;
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

// The end of the text from `at` that is copied as it is.
std::size_t SentencePieceNormalizer::plain_end(std::string_view text, std::size_t at) const {
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (plain_[byte]) continue;
    if (!plain_before_ascii_[byte]) break;
    if (at + 1 < text.size() && !is_ascii(text[at + 1])) break;
  }
  return at;
}

void SentencePieceNormalizer::append(std::string_view text, std::string& result) const {
  for (const char byte : text) {
    if (byte == ' ') {
      result += space_;
    } else {
      result.push_back(byte);
    }
  }
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
    if (const std::size_t end = plain_end(text, at); end > at) {
      result.append(text, at, end - at);
      after_space = false;
      at = end;
      continue;
    }
    auto [length, replacement] =
        text[at] == ' ' && space_is_plain_ ? Prefix{1, " "} : prefix(text, at);
    while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    if (!replacement.empty()) {
      append(replacement, result);
      after_space = remove_extra_ && replacement.ends_with(' ');
    }
    at += length;
  }
  while (remove_extra_ && result.ends_with(space_)) result.resize(result.size() - space_.size());
  if (dummy_suffix_) result += space_;
}

}  // namespace bloomery
