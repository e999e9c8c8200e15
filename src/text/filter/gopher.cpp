#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "text/filter/quality.h"
#include "text/filter/repeats.h"
#include "text/filter/text_parts.h"
#include "text/filter/words.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

template <class Test>
bool any_character(std::string_view text, const Test& test) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    if (test(next.code)) return true;
    at += static_cast<std::size_t>(next.length);
  }
  return false;
}

struct WordFacts {
  std::int64_t words = 0, not_marks = 0, with_letter = 0, length = 0;  // length of those not marks
  unsigned stop_words = 0;                                             // distinct
};

WordFacts facts_of(const std::vector<std::string_view>& words) {
  constexpr std::array<std::string_view, 8> kStopWords = {"the", "be",   "to",   "of",
                                                          "and", "that", "have", "with"};
  WordFacts facts;
  std::array<bool, kStopWords.size()> seen{};
  for (const std::string_view word : words) {
    ++facts.words;
    if (any_character(word, [](char32_t c) { return !is_punctuation_mark(c); })) {
      ++facts.not_marks;
      facts.length += characters(word);
    }
    if (any_character(word, [](char32_t c) { return kLetter.contains(char_class(c)); })) {
      ++facts.with_letter;
    }
    const auto found = std::ranges::find(kStopWords, word);
    if (found != kStopWords.end())
      seen[static_cast<std::size_t>(found - kStopWords.begin())] = true;
  }
  facts.stop_words = static_cast<unsigned>(std::ranges::count(seen, true));
  return facts;
}

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string about_lines(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  std::int64_t bullets = 0, ellipses = 0;
  for (const std::string_view line : lines) {
    const std::string_view begin = trim_left(line), end = trim_right(line);
    bullets += begin.starts_with("•") || begin.starts_with("-") ? 1 : 0;
    ellipses += end.ends_with("...") || end.ends_with("…") ? 1 : 0;
  }
  const auto count = static_cast<std::int64_t>(lines.size());
  if (ratio(bullets, count) > 0.9) return "gopher: over 90 % of lines begin with a bullet";
  if (ratio(ellipses, count) > 0.3) return "gopher: over 30 % of lines end in an ellipsis";
  return {};
}

}  // namespace

std::string gopher_quality(std::string_view text) {
  const WordFacts facts = facts_of(words_of(text));
  if (facts.not_marks < 50) return "gopher: fewer than 50 words";
  if (facts.not_marks > 100'000) return "gopher: more than 100,000 words";
  const double mean = ratio(facts.length, facts.not_marks);
  if (mean < 3) return "gopher: words shorter than 3 characters on average";
  if (mean > 10) return "gopher: words longer than 10 characters on average";
  if (ratio(count_of(text, "#"), facts.words) > 0.1) return "gopher: over 0.1 # per word";
  if (ratio(count_of(text, "...") + count_of(text, "…"), facts.words) > 0.1) {
    return "gopher: over 0.1 ellipses per word";
  }
  if (std::string reason = about_lines(text); !reason.empty()) return reason;
  if (ratio(facts.with_letter, facts.words) < 0.8) {
    return "gopher: under 80 % of words have a letter";
  }
  if (facts.stop_words < 2) return "gopher: fewer than 2 of the, be, to, of, and, that, have, with";
  return {};
}

std::string gopher_repetition(std::string_view text) {
  if (text.empty()) return "gopher: empty";
  const auto length = static_cast<double>(characters(text));
  const auto too_many = [&](const std::vector<std::string_view>& parts,
                            const char* what) -> std::string {
    const Repeats repeats = repeats_of(parts);
    if (ratio(repeats.count, static_cast<std::int64_t>(parts.size())) > 0.3) {
      return concat("gopher: over 30 % of ", what, " repeat");
    }
    if (static_cast<double>(repeats.characters) / length > 0.2) {
      return concat("gopher: over 20 % of characters in ", what, " that repeat");
    }
    return {};
  };
  std::string reason = too_many(split_at_newlines(trim(text), 2), "paragraphs");
  if (reason.empty()) reason = too_many(split_at_newlines(text, 1), "lines");
  if (!reason.empty()) return reason;
  WordRepeats repeats(words_of(text));
  for (const auto& [n, most] : {std::pair{2, 0.2}, {3, 0.18}, {4, 0.16}}) {
    if (static_cast<double>(repeats.most_frequent(n)) / length > most) {
      return concat("gopher: the most frequent ", n, "-gram makes over ", 100 * most, " %");
    }
  }
  for (const auto& [n, most] :
       {std::pair{5, 0.15}, {6, 0.14}, {7, 0.13}, {8, 0.12}, {9, 0.11}, {10, 0.10}}) {
    if (static_cast<double>(repeats.repeated(n)) / length > most) {
      return concat("gopher: ", n, "-grams that repeat make over ", 100 * most, " %");
    }
  }
  return {};
}

}  // namespace bloomery
