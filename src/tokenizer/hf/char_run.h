// Regular expressions without alternatives: a chain of characters and classes, each with an
// optional repetition, such as ' {2,}', '[0-9][0-9][0-9]', '\s+', '\p{N}{1,3}', '[\r\n]' or BLOOM's
// ' ?[^(\s|[.,!?...])]+'.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/hf/text_pattern.h"

namespace bloomery::hf {

class CharRun {
 public:
  // Nothing when the expression is of another kind, or could need backtracking: a repetition of
  // variable length must not be followed by a link that it could take from.
  static std::optional<CharRun> parse(std::string_view regex);

  // The first match at or after `from`; {size, size} when there is none.
  Match find(std::string_view text, std::size_t from) const;

 private:
  struct Range {
    char32_t first, last;
  };
  struct Link {
    std::vector<Range> ranges;
    std::vector<bool (*)(char32_t)> classes;
    bool inverted = false;
    std::size_t least = 1, most = 1;

    bool takes(char32_t code) const;
  };
  friend class CharRunParser;

  // The end of the match that starts at `at`; `at` itself when there is none.
  std::size_t end_of(std::string_view text, std::size_t at) const;

  std::vector<Link> links_;
};

}  // namespace bloomery::hf
