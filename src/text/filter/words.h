// Words as spaCy's English tokenizer has them, which is what datatrove counts.
//
// White space divides. Then marks leave both ends of a piece ("(word)," is four words) until a
// special word is left or nothing more comes off; what is left is divided at marks inside
// ("well-known" is three), unless it is a URL. Special words ("don't", "e.g.", ":-)") have their
// own division.
#pragma once

#include <string_view>
#include <vector>

namespace bloomery {

// The words in order, without white space. The text must be UTF-8.
std::vector<std::string_view> words_of(std::string_view text);

}  // namespace bloomery
