// The data behind properties.h, as text: runs (unicode/run_text.h) and entries
// (unicode/normalize_tables.h).
#pragma once

namespace bloomery {

// A set of characters: those of some general categories, but for the runs that differ.
struct CharacterSetData {
  const char* name;  // with a blank in it: not for regular expressions
  const char* categories;
  const char* differences;  // of two classes: as the categories say, the other way round
};

extern const char* const kScriptNames;  // each followed by a blank, in the order of the classes
extern const char* const kScriptRuns;
extern const CharacterSetData kCharacterSets[];  // the last has no name
extern const char* const kCaseGroups;            // characters that differ in case alone
extern const char* const kLongFolds;  // characters that differ from several in case alone

}  // namespace bloomery
