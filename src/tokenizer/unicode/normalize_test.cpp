#include "tokenizer/unicode/normalize.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

std::string normalized(std::string text, NormalForm form) {
  normalize(text, form);
  return text;
}

TEST(Normalize, FormsOfOneText) {
  // A ligature, a composed and a decomposed letter, Hangul, a composition exclusion.
  const std::string text = "\uFB01\u00E9e\u0301\uAC01\u1100\u1161\u0958";
  EXPECT_EQ(normalized(text, NormalForm::nfc), "\uFB01\u00E9\u00E9\uAC01\uAC00\u0915\u093C");
  EXPECT_EQ(normalized(text, NormalForm::nfd),
            "\uFB01e\u0301e\u0301\u1100\u1161\u11A8\u1100\u1161\u0915\u093C");
  EXPECT_EQ(normalized(text, NormalForm::nfkc), "fi\u00E9\u00E9\uAC01\uAC00\u0915\u093C");
  EXPECT_EQ(normalized(text, NormalForm::nfkd),
            "fie\u0301e\u0301\u1100\u1161\u11A8\u1100\u1161\u0915\u093C");
}

TEST(Normalize, MarksAreOrderedByClassAndBlockOneAnother) {
  EXPECT_EQ(normalized("a\u0301\u0323", NormalForm::nfd), "a\u0323\u0301");
  EXPECT_EQ(normalized("a\u0301\u0323", NormalForm::nfc), "\u1EA1\u0301");
  EXPECT_EQ(normalized("a\u0300\u0301", NormalForm::nfc), "\u00E0\u0301");
  EXPECT_EQ(normalized("\u0301a", NormalForm::nfc), "\u0301a");
  EXPECT_EQ(normalized("\uAC00\u11A8\u11A8", NormalForm::nfc), "\uAC01\u11A8");
}

TEST(Normalize, StableTextIsRecognised) {
  EXPECT_EQ(normalized_prefix("plain text, longer than a word", NormalForm::nfkc), 30u);
  EXPECT_EQ(normalized_prefix("\u00E9\u4E2D\uAC01", NormalForm::nfc), 8u);
  EXPECT_EQ(normalized_prefix("\u00E9", NormalForm::nfd), 0u);
  // The letter before a mark may join it.
  EXPECT_EQ(normalized_prefix("abe\u0301", NormalForm::nfc), 2u);
}

TEST(Normalize, ALongRunOfMarksTakesLittleTime) {
  std::string text = "a";
  for (int i = 0; i < 300000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string result = normalized(text, NormalForm::nfc);
  EXPECT_TRUE(result.starts_with("\u1EA1\u0323"));
  EXPECT_EQ(result.size(), text.size() - 1 - 2 + 3);
}

TEST(Lowercase, EachCharacterByItself) {
  std::string text = "ABC xyz \u00C9\u0130\u03A3\u03A3 \u1E9E \u01C5 \U00010400";
  lowercase(text);
  EXPECT_EQ(text, "abc xyz \u00E9i\u0307\u03C3\u03C3 \u00DF \u01C6 \U00010428");
}

}  // namespace
}  // namespace bloomery
