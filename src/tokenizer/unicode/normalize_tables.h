// The data behind normalize.h, as text: entries end in ';' and hold hexadecimal numbers, the
// distance from the character of the entry before, then the values.
#pragma once

namespace bloomery {

extern const char* const kCanonicalDecompositions;  // full ones, without Hangul
extern const char* const kCompatibilityDecompositions;
extern const char* const kCompositions;  // the pair that makes the character
extern const char* const kCombiningClasses;
extern const char* const kLowercaseRuns;  // how many, step between them, shift + 0x20000

}  // namespace bloomery
