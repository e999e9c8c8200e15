// Where in a text its tokens stand: the offsets that say which of them are to be learnt.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

struct TextSpan {
  std::size_t begin = 0, end = 0;  // bytes
};

// For each of the tokens that encoding `text` gave, the bytes that it stands for; parts of a
// character have all of it, and a token that was put around the text has nothing. What the tokens
// say is laid beside the text, so it does not matter what normalising has changed: composed
// characters, spaces that came or went, letters of another case, characters without a token.
// Nothing where they are too unlike to tell.
std::optional<std::vector<TextSpan>> token_spans(const Tokenizer& tokenizer,
                                                 std::span<const TokenId> ids,
                                                 std::string_view text);

}  // namespace bloomery
