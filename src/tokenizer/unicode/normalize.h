// Unicode normal forms and lowercase, with the tables of Hugging Face tokenizers 0.23: normal forms
// of Unicode 11, case of Unicode 16.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// The length of a prefix that normalising cannot change, whatever follows the prefix; text.size()
// when the text is surely normalised already. Runs at memory speed on ASCII.
std::size_t normalized_prefix(std::string_view text, NormalForm form);

// Normalises in place.
void normalize(std::string& text, NormalForm form);

// Each character by itself: a sigma at the end of a word becomes U+03C3 like any other.
void lowercase(std::string& text);

// Every character decomposes to itself and starters only: what canonical ordering asks for.
int combining_class(char32_t code);

}  // namespace bloomery
