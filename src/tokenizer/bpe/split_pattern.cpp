#include "tokenizer/bpe/split_pattern.h"

#include <algorithm>
#include <utility>

#include "tokenizer/bpe/scanners.h"

namespace bloomery {
namespace {

constexpr std::pair<std::string_view, SplitPattern> kNames[] = {
    {"none", SplitPattern::none},     {"gpt2", SplitPattern::gpt2},
    {"cl100k", SplitPattern::cl100k}, {"llama3", SplitPattern::llama3},
    {"qwen2", SplitPattern::qwen2},   {"qwen3_5", SplitPattern::qwen3_5},
    {"o200k", SplitPattern::o200k},
};

// Spellings that mean the same, in the order in which they are replaced. Possessive quantifiers
// change nothing here: no pattern can match by giving back what one of these has taken.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"++", "+"},
    {"?+", "?"},
    {"*+", "*"},
    {"3}+", "3}"},
    {"[\\p{L}]", "\\p{L}"},
    {"[\\p{N}]", "\\p{N}"},
    {"'s|'t|'re|'ve|'m|'ll|'d", "'c"},
    {"'(?i:[sdmt]|ll|ve|re)", "(?i:'c)"},
    {"'(?:[sdmt]|ll|ve|re)", "'c"},
    {"\\s*[\\r\\n]|", "\\s*[\\r\\n]+|"},
    {"\\p{N}{1}", "\\p{N}"},
};

constexpr std::pair<std::string_view, SplitPattern> kPatterns[] = {
    {R"('c| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", SplitPattern::gpt2},
    {R"('c| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+$|\s+(?!\S))", SplitPattern::gpt2},
    {R"((?i:'c)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]+|\s+(?!\S))",
     SplitPattern::cl100k},
    {R"((?i:'c)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))",
     SplitPattern::llama3},
    {R"((?i:'c)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))",
     SplitPattern::qwen2},
    {R"((?i:'c)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))",
     SplitPattern::qwen3_5},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'c)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'c)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S))",
     SplitPattern::o200k},
};

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (;;) {
    const std::size_t at = text.find(from);
    result.append(text.substr(0, at));
    if (at == std::string_view::npos) return result;
    result.append(to);
    text.remove_prefix(at + from.size());
  }
}

}  // namespace

std::optional<SplitPattern> pattern_named(std::string_view name) {
  for (const auto& [known, pattern] : kNames) {
    if (known == name) return pattern;
  }
  return std::nullopt;
}

std::string name_of(SplitPattern pattern) {
  const auto found =
      std::ranges::find(kNames, pattern, &std::pair<std::string_view, SplitPattern>::second);
  return std::string(found->first);
}

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const auto& [name, pattern] : kNames) {
    names.emplace_back(name);
  }
  return names;
}

std::optional<SplitPattern> known_pattern(std::string_view regex, regex::Dialect dialect) {
  constexpr std::size_t kLongest = 1000;  // no known one is, in any spelling
  if (regex.size() > kLongest) return std::nullopt;
  // To Oniguruma {1,3}+ repeats {1,3}, and $ is the end of a line.
  const auto has = [&](std::string_view part) { return regex.find(part) != regex.npos; };
  if (dialect == regex::Dialect::oniguruma && (has("3}+") || has("\\s+$"))) return std::nullopt;
  std::string plain(regex);
  for (const auto& [from, to] : kSpellings) {
    plain = replaced(plain, from, to);
  }
  // What \s+(?!\S) leaves over is one character: a last alternative of \s is the same as \s+.
  for (const std::string_view last : {R"(|\s+)", R"(|\s)"}) {
    if (!plain.ends_with(last)) continue;
    const auto rest = std::string_view(plain).substr(0, plain.size() - last.size());
    for (const auto& [known, pattern] : kPatterns) {
      if (known == rest) return pattern;
    }
  }
  return std::nullopt;
}

std::size_t piece_end(SplitPattern pattern, std::string_view text, std::size_t at) {
  return with_scanner(pattern, [&](auto scanner) { return scanner.next(text, at); });
}

}  // namespace bloomery
