// Ranges of characters behind graphemes.h.
#pragma once

#include "tokenizer/hf/char_class_tables.h"

namespace bloomery {

extern const CharRange kGraphemeControls[11];
extern const CharRange kGraphemeExtends[334];
extern const CharRange kGraphemePrepends[15];
extern const CharRange kConjunctConsonants[54];
extern const CharRange kConjunctLinkers[20];
extern const CharRange kPictographs[156];

}  // namespace bloomery
