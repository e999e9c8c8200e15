#include "tokenizer/regex/regex.h"

#include <optional>

#include "base/error.h"
#include "tokenizer/regex/matcher.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

std::size_t next_character(std::string_view text, std::size_t at) {
  return at + (at < text.size() ? static_cast<std::size_t>(utf8_at(text, at).length) : 1);
}

std::optional<Match> find(regex::Matcher& matcher, std::string_view text, std::size_t from) {
  for (std::size_t at = from; at <= text.size(); at = next_character(text, at)) {
    if (!matcher.may_begin_at(at)) continue;
    if (const std::optional<std::size_t> end = matcher.match_at(at)) return Match{at, *end};
  }
  return std::nullopt;
}

regex::Program compiled(const std::string& expression, regex::Dialect dialect) {
  const regex::Node root = regex::parse(expression, dialect);
  try {
    return regex::compile(root);
  } catch (const Error& error) {
    throw Error(concat("the regular expression '", expression, "': ", error.what()));
  }
}

}  // namespace

Regex::Regex(const std::string& expression, regex::Dialect dialect)
    : expression_(expression), program_(compiled(expression, dialect)) {}

void Regex::find_all(std::string_view text, std::vector<Match>& matches) const {
  regex::Matcher matcher(program_, text);
  const std::size_t before = matches.size();
  try {
    std::size_t from = 0;
    while (const std::optional<Match> match = find(matcher, text, from)) {
      const bool follows = matches.size() > before && matches.back().end == match->end;
      if (match->begin == match->end && follows) {
        from = next_character(text, from);
        continue;
      }
      matches.push_back(*match);
      from = match->end;
    }
  } catch (const regex::Matcher::TooLong&) {
    throw Error(concat("the regular expression '", expression_, "' takes too long on a text of ",
                       text.size(), " bytes; divide the text"));
  }
}

}  // namespace bloomery
