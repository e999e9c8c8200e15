// Ranges of characters behind char_classes.h.
#pragma once

#include <cstdint>

namespace bloomery {

struct CharRange {
  char32_t first, last;
};

extern const CharRange kCombiningMarks[250];
extern const CharRange kBertNonspacing[266];
extern const CharRange kBertControls[25];
extern const CharRange kPunctuation[156];
extern const CharRange kNumeric[146];
extern const CharRange kWordCharacters[796];

}  // namespace bloomery
