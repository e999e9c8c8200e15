// In which language a text is: naive Bayes on n-grams of letters, one to four long, of which each
// language has its most frequent ones (profiles.h). The same text always gives the same answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// The ISO 639-1 code of the likeliest language; empty for a text without letters that any known
// language uses. Of a long text three parts are looked at.
std::string language_of(std::string_view text);

// The languages that can be told apart.
const std::vector<std::string>& known_languages();

}  // namespace bloomery
