// Languages by their most frequent n-grams of letters.
#pragma once

namespace bloomery {

struct LanguageProfile {
  const char* name;  // ISO 639-1
  // N-grams of letters with _ for the ends of words, by falling frequency p; a number before some
  // holds until the next and is -4 ln p.
  const char* grams;
};

extern const LanguageProfile kLanguageProfiles[];  // ends with a null name

}  // namespace bloomery
