// Regular expressions of tokenizer files: compiled once, matched without recursion into the text.
// Of several ways to match, the first in the order of the expression counts, as in Perl. What
// became of a state (an instruction at a place of the text) is remembered once a text takes many
// steps, so that nothing is exponential; runs of one class that are scanned again and again are
// quadratic, and what then takes too long is an Error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex/program.h"

namespace bloomery {

// A part of a text, in bytes; empty where an expression matched nothing.
struct Match {
  std::size_t begin, end;
};

class Regex {
 public:
  explicit Regex(const std::string& expression, regex::Dialect dialect = regex::Dialect::oniguruma);

  // Appends the matches of a text, which must be valid UTF-8, from left to right. An empty match
  // does not follow another match at once.
  void find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  std::string expression_;
  regex::Program program_;
};

}  // namespace bloomery
