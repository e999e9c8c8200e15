#include "text/stories/words.h"

namespace bloomery {
namespace {

constexpr std::string_view kMarks = ".,!?\"";

bool is_mark(char c) { return kMarks.find(c) != std::string_view::npos; }

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\'' || c == '-';
}

}  // namespace

std::optional<std::vector<std::string_view>> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (is_letter(text[at])) {
      while (end < text.size() && is_letter(text[end])) ++end;
    } else if (text[at] == ' ') {
      at = end;
      continue;
    } else if (!is_mark(text[at])) {
      return std::nullopt;
    }
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string written(std::span<const std::string_view> words) {
  std::string text;
  bool quoted = false, after_opening = true;
  for (const std::string_view word : words) {
    const bool is_quote = word == "\"", opening = is_quote && !quoted;
    const bool leans_left = is_mark(word[0]) && !opening;
    if (!leans_left && !after_opening) text += ' ';
    text += word;
    quoted = quoted != is_quote;
    after_opening = opening;
  }
  return text;
}

std::optional<std::vector<std::string_view>> story_words(std::string_view text) {
  auto words = split_words(text);
  if (words && written(*words) != text) return std::nullopt;
  return words;
}

}  // namespace bloomery
