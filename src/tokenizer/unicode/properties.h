// Properties of characters by the names that regular expressions give them, of the Unicode version
// of classes.h, and characters that differ in case alone.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/unicode/code_set.h"

namespace bloomery {

// \p{Lu}, \p{Letter}, \p{Han}, \p{Alphabetic} ...: case, blanks, '_' and '-' do not matter. Nothing
// for a name that is not known.
std::optional<CodeSet> property_named(std::string_view name);

// A set of property_tables.cpp by its whole name, which must be one.
CodeSet character_set(std::string_view name);

// The set with all characters that differ from one of it in case alone.
CodeSet any_case(const CodeSet& set);

// A character that differs from several characters in case alone, such as U+00DF from "ss".
struct LongFold {
  char32_t code;
  std::vector<char32_t> folded;
};
const std::vector<LongFold>& long_folds();

}  // namespace bloomery
