// What spaCy's English tokenizer knows of characters and words (tools/word_tables.py).
#pragma once

#include <span>
#include <string_view>

namespace bloomery {

struct CodeRange {
  char32_t first, last;
};

// Ascending.
extern const std::span<const CodeRange> kAlpha, kIcon;
extern const std::span<const char32_t> kPunctuation, kQuote, kCurrency;

// Divided by white space: units that part from a number in front of them, and words that are
// divided as they stand here, at each ~, or not at all.
extern const std::string_view kUnits, kSpecialWords;

}  // namespace bloomery
