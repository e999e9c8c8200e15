#include "tokenizer/unicode/classes.h"

#include <algorithm>

#include "tokenizer/unicode/category_runs.h"
#include "tokenizer/unicode/run_text.h"

namespace bloomery::detail {
namespace {

// In the order of the general categories in kCategoryRuns.
constexpr CharClass kClassOfCategory[] = {CharClass::uppercase,    CharClass::lowercase,
                                          CharClass::titlecase,    CharClass::modifier_letter,
                                          CharClass::other_letter, CharClass::mark,
                                          CharClass::mark,         CharClass::mark,
                                          CharClass::decimal,      CharClass::other_number,
                                          CharClass::other_number, CharClass::punctuation,
                                          CharClass::punctuation,  CharClass::punctuation,
                                          CharClass::punctuation,  CharClass::punctuation,
                                          CharClass::punctuation,  CharClass::punctuation,
                                          CharClass::symbol,       CharClass::symbol,
                                          CharClass::symbol,       CharClass::symbol,
                                          CharClass::white_space,  CharClass::white_space,
                                          CharClass::white_space,  CharClass::other,
                                          CharClass::other,        CharClass::other,
                                          CharClass::other};

// visit(first, last, class) for runs of one class.
template <class Visit>
constexpr void read_classes(Visit visit) {
  char32_t begin = 0, end = 0;
  std::uint8_t before = 0;
  read_runs(kCategoryRuns, [&](char32_t first, char32_t last, int category) {
    const auto kind = static_cast<std::uint8_t>(kClassOfCategory[category]);
    if (kind != before && first > 0) {
      visit(begin, end, before);
      begin = first;
    }
    before = kind;
    end = last;
  });
  visit(begin, end, before);
}

constexpr ClassTables make_tables() {
  ClassTables tables{};
  std::uint8_t used = 0;
  std::uint8_t whole[12] = {};  // the block that is all of a class; 0: none yet, that is ASCII's
  read_classes([&](char32_t first, char32_t last, std::uint8_t kind) {
    for (char32_t code = first; code <= last; ++code) {
      std::uint8_t& block = tables.block[code / 128];
      if (code % 128 == 0 && code + 127 <= last) {
        if (whole[kind] == 0) {
          whole[kind] = used++;
          std::ranges::fill(tables.classes[whole[kind]], kind);
        }
        block = whole[kind];
        code += 127;
      } else {
        if (code % 128 == 0) block = used++;
        tables.classes[block][code % 128] = kind;
      }
    }
  });
  // The control characters that are white space.
  for (const char32_t code : {9, 10, 11, 12, 13, 0x85}) {
    tables.classes[tables.block[code / 128]][code % 128] =
        static_cast<std::uint8_t>(CharClass::white_space);
  }
  return tables;
}

}  // namespace

constinit const ClassTables kClassTables = make_tables();

}  // namespace bloomery::detail
