// The data behind normalize.h, as text. An entry is the distance from the character of the entry
// before and ':' (without: 1), values separated by blanks, and ';'; numbers are hexadecimal.
#pragma once

#include <functional>
#include <vector>

namespace bloomery {

// Without Hangul. Pairs that compose again, either part of which may decompose further; after a
// '-', or when it is one character, a full decomposition that does not.
extern const char* const kCanonicalDecompositions;
extern const char* const kCompatibilityDecompositions;  // full ones, where they differ from those
extern const char* const kCombiningClasses;
extern const char* const kLowercaseRuns;  // how many, step between them, shift + 0x20000

struct TableEntry {
  char32_t code = 0;
  bool is_marked = false;  // by '-'
  std::vector<char32_t> values;
};

void read_table(const char* text, const std::function<void(const TableEntry&)>& visit);

}  // namespace bloomery
