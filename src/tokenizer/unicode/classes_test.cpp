#include "tokenizer/unicode/classes.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace bloomery {
namespace {

// How many characters the reference engines match with \p{Lu} and so on.
TEST(CharClass, CountsAreThoseOfUnicode16) {
  std::map<CharClass, int> counts;
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code < 0xD800 || code > 0xDFFF) ++counts[char_class(code)];
  }
  EXPECT_EQ(counts[CharClass::uppercase], 1858);
  EXPECT_EQ(counts[CharClass::lowercase], 2258);
  EXPECT_EQ(counts[CharClass::titlecase], 31);
  EXPECT_EQ(counts[CharClass::modifier_letter], 404);
  EXPECT_EQ(counts[CharClass::other_letter], 136477);
  EXPECT_EQ(counts[CharClass::mark], 2501);
  EXPECT_EQ(counts[CharClass::decimal], 760);
  EXPECT_EQ(counts[CharClass::other_number], 236 + 915);
  EXPECT_EQ(counts[CharClass::punctuation], 855);
  EXPECT_EQ(counts[CharClass::symbol], 8514);
  EXPECT_EQ(counts[CharClass::white_space], 25);
}

TEST(CharClass, WhiteSpaceIsTheProperty) {
  const std::vector<char32_t> expected = {0x9,    0xA,    0xB,    0xC,    0xD,    0x20,   0x85,
                                          0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                          0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x2028,
                                          0x2029, 0x202F, 0x205F, 0x3000};
  std::vector<char32_t> found;
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (char_class(code) == CharClass::white_space) found.push_back(code);
  }
  EXPECT_EQ(found, expected);
}

TEST(CharClass, SingleCharacters) {
  EXPECT_EQ(char_class(U'A'), CharClass::uppercase);
  EXPECT_EQ(char_class(U'ß'), CharClass::lowercase);
  EXPECT_EQ(char_class(U'ǅ'), CharClass::titlecase);
  EXPECT_EQ(char_class(U'ʰ'), CharClass::modifier_letter);
  EXPECT_EQ(char_class(U'中'), CharClass::other_letter);
  EXPECT_EQ(char_class(0x301), CharClass::mark);
  EXPECT_EQ(char_class(U'٣'), CharClass::decimal);
  EXPECT_EQ(char_class(U'½'), CharClass::other_number);
  EXPECT_EQ(char_class(U'_'), CharClass::punctuation);
  EXPECT_EQ(char_class(U'€'), CharClass::symbol);
  EXPECT_EQ(char_class(0), CharClass::other);
  EXPECT_EQ(char_class(0x10FFFF), CharClass::other);
  EXPECT_EQ(char_class(0x1C89), CharClass::uppercase);  // new in Unicode 16
  EXPECT_EQ(char_class(0x88F), CharClass::other);       // new in Unicode 17
}

}  // namespace
}  // namespace bloomery
