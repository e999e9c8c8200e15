// How stories are written: words and punctuation marks with single spaces, on one line.
//
// A word is letters, with ' and - inside; a mark is one of . , ! ? and the quotation mark, which
// opens and closes by turns. A space stands before every word and opening mark but the first, none
// before other marks and none behind an opening one: the words alone give the text back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// The words and marks of a text; none when it has any other character. Spaces only separate.
std::optional<std::vector<std::string_view>> split_words(std::string_view text);

std::string written(std::span<const std::string_view> words);

// The words of a text that is written as above, byte for byte; none for any other.
std::optional<std::vector<std::string_view>> story_words(std::string_view text);

}  // namespace bloomery
