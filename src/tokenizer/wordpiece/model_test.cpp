#include "tokenizer/wordpiece/model.h"

#include <gtest/gtest.h>

#include <string>

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

class WordPieceModelTest : public testing::Test {
 protected:
  static constexpr ByteTrie::Entry kVocabulary[] = {
      {"[UNK]", 0}, {"un", 1}, {"##aff", 2}, {"##able", 3}, {"##ab", 4}, {"##", 5}, {"é", 6}};

  Ids encode(std::string_view word) const {
    Ids ids{99};
    model_.encode(word, ids);
    ids.erase(ids.begin());
    return ids;
  }

  WordPieceModel model_{kVocabulary, {.unknown = 0, .longest_word = 10}};
};

TEST_F(WordPieceModelTest, TakesTheLongestPieceFirst) {
  EXPECT_EQ(encode("unaffable"), (Ids{1, 2, 3}));
  EXPECT_EQ(encode("unab"), (Ids{1, 4}));
}

TEST_F(WordPieceModelTest, AWordThatDoesNotComeOutIsUnknownAsAWhole) {
  EXPECT_EQ(encode("unaffx"), (Ids{0}));
  EXPECT_EQ(encode("able"), (Ids{0}));  // continues a word, does not begin one
  EXPECT_EQ(encode("unablx"), (Ids{0}));
}

TEST_F(WordPieceModelTest, LengthIsCountedInCharacters) {
  const std::string ten = "unaffaffab";
  EXPECT_EQ(encode(ten), (Ids{1, 2, 2, 4}));
  EXPECT_EQ(encode(ten + "able"), (Ids{0}));
  EXPECT_EQ(encode("é"), (Ids{6}));
}

TEST_F(WordPieceModelTest, AnEmptyWordHasNoPieces) { EXPECT_EQ(encode(""), Ids{}); }

}  // namespace
}  // namespace bloomery
