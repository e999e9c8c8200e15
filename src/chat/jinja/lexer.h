// A template's source as tokens, by Jinja's rules for white space with trim_blocks and
// lstrip_blocks, as chat templates are written for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bloomery::jinja {

struct Token {
  enum class Type {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    text,
    integer,
    real,
    sign,
    end
  };
  Type type;
  std::string value;  // of text with its escapes undone
  int line;
};

// Ends in a token of type end.
std::vector<Token> tokenize(std::string_view source);

}  // namespace bloomery::jinja
