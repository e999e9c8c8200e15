// A regular expression of a tokenizer file on the first line, a text behind it.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz.h"
#include "tokenizer/regex/regex.h"
#include "tokenizer/utf8.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view bytes = as_text(input);
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const auto dialect = end % 2 == 0 ? regex::Dialect::oniguruma : regex::Dialect::rust;
  const Regex regex(std::string(bytes.substr(0, end)), dialect);
  const std::string text = repair_utf8(bytes.substr(std::min(end + 1, bytes.size())));
  std::vector<Match> matches;
  regex.find_all(text, matches);
  std::size_t done = 0;
  for (const Match& match : matches) {
    if (match.begin < done || match.end < match.begin || match.end > text.size()) std::abort();
    done = match.end;
  }
}

}  // namespace bloomery
