#include "tokenizer/sentencepiece/normalizer.h"

#include <algorithm>
#include <array>

#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

bool is_ascii(char byte) { return static_cast<signed char>(byte) >= 0; }

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceNormalization& rules,
                                                 bool whitespace_is_suffix, ByteTrie verbatim,
                                                 bool keep_spaces, std::string_view name)
    : charsmap_(rules.charsmap, name),
      verbatim_(std::move(verbatim)),
      space_(rules.escape_whitespaces && !keep_spaces ? kWordMark : " "),
      dummy_prefix_(rules.add_dummy_prefix && !whitespace_is_suffix),
      dummy_suffix_(rules.add_dummy_prefix && whitespace_is_suffix),
      remove_extra_(rules.remove_extra_whitespaces),
      keep_spaces_(keep_spaces) {
  for (int byte = 0; byte < 256; ++byte) {
    const char first = static_cast<char>(byte);
    if (nothing_begins_with(first)) {
      copied_[static_cast<std::size_t>(byte)] = Copied::always;
      continue;
    }
    if (first == ' ' || verbatim_.next(ByteTrie::kRoot, first) != ByteTrie::kNowhere) continue;
    bool before_ascii = is_ascii(first) && charsmap_.longest({&first, 1}, 0).length == 0;
    for (int second = 1; second < 128 && before_ascii; ++second) {
      const std::array<char, 2> text = {first, static_cast<char>(second)};
      before_ascii = !charsmap_.leads_on({text.data(), text.size()});
    }
    if (before_ascii) copied_[static_cast<std::size_t>(byte)] = Copied::before_ascii;
  }
  copies_all_ = !remove_extra_ && std::ranges::all_of(copied_, [](Copied copied) {
    return copied == Copied::always;
  });
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

// Appends what is copied as it is, and spaces, up to one that is to be removed, and returns where
// that ends.
std::size_t SentencePieceNormalizer::copy_plain(std::string_view text, std::size_t at,
                                                bool& after_space, std::string& result) const {
  std::size_t end = copies_all_ ? text.size() : at;
  bool after = after_space;
  for (; end < text.size(); ++end) {
    const Copied copied = copied_[static_cast<unsigned char>(text[end])];
    const bool is_space = text[end] == ' ';
    const bool before_other = end + 1 < text.size() && !is_ascii(text[end + 1]);
    // No branch on what is a space: they are where one least expects them.
    if (static_cast<int>(copied == Copied::no) | (is_space & static_cast<int>(after)) |
        (static_cast<int>(copied == Copied::before_ascii) & static_cast<int>(before_other))) {
      break;
    }
    after = is_space && remove_extra_;
  }
  after_space = after;
  append_replacing(text.substr(at, end - at), ' ', space_, result);
  return end;
}

// Spaces at the end, and marks that were written as such, which no longer differ.
void SentencePieceNormalizer::strip_end(std::string& result) const {
  for (;;) {
    if (result.ends_with(space_)) {
      result.resize(result.size() - space_.size());
    } else if (keep_spaces_ && result.ends_with(kWordMark)) {
      result.resize(result.size() - kWordMark.size());
    } else {
      return;
    }
  }
}

void SentencePieceNormalizer::normalize(std::string_view text, std::string& result,
                                        bool at_start) const {
  result.clear();
  std::size_t at = 0;
  while (remove_extra_ && at < text.size()) {
    const Prefix next = prefix(text, at);
    if (next.replacement != " ") break;
    at += next.length;
  }
  if (at == text.size()) return;
  if (dummy_prefix_ && at_start) result += space_;
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
  if (remove_extra_) strip_end(result);
  if (dummy_suffix_) result += space_;
}

}  // namespace bloomery
