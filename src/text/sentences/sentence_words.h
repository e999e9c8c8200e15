// The words that the sentence rules treat by list.
#pragma once

#include <string_view>

namespace bloomery {

// Whether a word, in small letters and without its full stop, is an abbreviation after which a
// capital is no sign of a new sentence: titles, months, days, companies, states, references.
bool is_leading_abbreviation(std::string_view word);

// Whether a word in small letters, written with a capital, begins a sentence rather than a name.
bool is_sentence_starter(std::string_view word);

}  // namespace bloomery
