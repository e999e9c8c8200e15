#include <algorithm>
#include <array>

#include "text/filter/quality.h"
#include "text/filter/text_parts.h"
#include "text/sentences/sentence_splitter.h"
#include "tokenizer/unicode/normalize.h"

namespace bloomery {
namespace {

constexpr std::array<std::string_view, 6> kPolicies = {"terms of use",   "privacy policy",
                                                       "cookie policy",  "uses cookies",
                                                       "use of cookies", "use cookies"};

// Without [12], [], [edit] and [citation needed].
std::string without_citations(std::string_view line) {
  std::string kept;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = std::min(line.find('[', at), line.size());
    kept += line.substr(at, begin - at);
    if (begin == line.size()) break;
    const std::string_view rest = line.substr(begin);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    std::size_t length = digits < rest.size() && rest[digits] == ']' ? digits + 1 : 0;
    for (const std::string_view word : {"[edit]", "[citation needed]"}) {
      if (rest.starts_with(word)) length = word.size();
    }
    if (length == 0) kept += '[';
    at = begin + std::max<std::size_t>(length, 1);
  }
  return kept;
}

bool has_line_end(std::string_view line) {
  return !line.empty() && std::string_view(".?!\"'").find(line.back()) != std::string_view::npos &&
         !line.ends_with("...");
}

struct Line {
  std::string text, lower;
  std::string dropped, document_dropped;  // why
};

void classify(Line& line, std::string_view given, const C4Rules& rules) {
  const std::string_view bare = trim(given);
  const std::vector<std::string_view> words = split_space(bare);
  const auto is_long = [](std::string_view word) { return characters(word) > 1000; };
  if (std::ranges::any_of(words, is_long)) {
    line.dropped = "lines with a word of over 1000 characters";
    return;
  }
  line.text = without_citations(bare);
  if (rules.line_needs_end && !has_line_end(line.text)) {
    line.dropped = "lines without punctuation at the end";
    return;
  }
  if (words.size() < 3) {
    line.dropped = "lines of fewer than 3 words";
    return;
  }
  line.lower = line.text;
  lowercase(line.lower);
  const auto has = [&](std::string_view part) { return line.lower.find(part) != line.lower.npos; };
  if (has("lorem ipsum")) {
    line.document_dropped = "c4: lorem ipsum";
  } else if (has("javascript")) {
    line.dropped = "lines with javascript";
  } else if (line.text.find('{') != line.text.npos) {
    line.document_dropped = "c4: a curly bracket";
  } else if (std::ranges::any_of(kPolicies, has)) {
    line.dropped = "lines about policies or cookies";
  }
}

}  // namespace

std::string c4_quality(std::string& text, const C4Rules& rules,
                       std::map<std::string, std::int64_t>& dropped) {
  std::string kept;
  std::int64_t sentences = 0;
  std::vector<std::string_view> parts;
  bool any = false;
  for (const std::string_view given : split_lines(text)) {
    Line line;
    classify(line, given, rules);
    if (!line.document_dropped.empty()) return line.document_dropped;
    if (!line.dropped.empty()) {
      ++dropped[line.dropped];
      continue;
    }
    parts.clear();
    split_sentences(line.text, false, parts);
    sentences += static_cast<std::int64_t>(parts.size());
    if (any) kept += '\n';
    kept += line.text;
    any = true;
  }
  if (sentences < rules.least_sentences) return "c4: fewer than 5 sentences in lines that stay";
  text = trim(kept);
  return {};
}

}  // namespace bloomery
