// Sets of characters behind char_classes.h and graphemes.h, as text of runs (unicode/run_text.h) of
// two classes: not in the set, in it.
#pragma once

namespace bloomery {

extern const char* const kCombiningMarks;
extern const char* const kBertNonspacing;
extern const char* const kBertControls;
extern const char* const kPunctuation;
extern const char* const kNumeric;
extern const char* const kWordCharacters;

extern const char* const kGraphemeControls;
extern const char* const kGraphemeExtends;
extern const char* const kGraphemePrepends;
extern const char* const kConjunctConsonants;
extern const char* const kConjunctLinkers;
extern const char* const kPictographs;

}  // namespace bloomery
