// The data behind properties.h, as text: runs (unicode/run_text.h) and entries
// (unicode/normalize_tables.h).
#pragma once

namespace bloomery {

struct PropertyRuns {
  const char* name;
  const char* runs;  // of two classes: without the property, with it
};

extern const char* const kScriptNames;  // each followed by a blank, in the order of the classes
extern const char* const kScriptRuns;
extern const PropertyRuns kProperties[];  // the last has no name
extern const char* const kCaseGroups;     // characters that differ in case alone
extern const char* const kLongFolds;      // characters that differ from several in case alone

}  // namespace bloomery
