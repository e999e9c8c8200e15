#include "text/decontaminate/ngram_keys.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

constexpr const char* kTest =
    "one two Three, four five six seven eight nine ten eleven twelve thirteen";

std::string sentences(const std::string& word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += word + std::to_string(i) + " word. ";
  return text;
}

TEST(NgramKeys, OfTestTexts) {
  NgramKeys keys({});
  keys.add_text("only seven words are in this text");
  EXPECT_EQ(keys.size(), 0);
  keys.add_text("Exactly eight words are in this short text!");
  ASSERT_EQ(keys.size(), 1);
  EXPECT_EQ(keys.key(0), "exactly eight words are in this short text");
  keys.add_text(kTest);
  keys.add_text(kTest);
  EXPECT_EQ(keys.size(), 2);
  keys.add_text(std::string(kTest) + " fourteen fifteen");
  EXPECT_EQ(keys.size(), 4);
}

// A vector of Megatron's filter_ngrams: two pieces of 231 characters.
TEST(NgramKeys, CutWithTheirSurroundings) {
  NgramKeys keys({});
  keys.add_text(kTest);
  const std::string text = sentences("aa", 40) + kTest + ". " + sentences("bb", 40);
  const std::vector<std::string> pieces = keys.pieces(text);
  ASSERT_EQ(pieces.size(), 2);
  EXPECT_TRUE(pieces[0].starts_with("aa0 word. aa1"));
  EXPECT_TRUE(pieces[0].ends_with(" word."));
  EXPECT_TRUE(pieces[1].starts_with(" bb"));
  for (const std::string& piece : pieces) {
    EXPECT_GT(piece.size(), 200);
    EXPECT_LT(piece.size(), 260);
  }
  EXPECT_EQ(keys.pieces("no key in it").size(), 1);
  EXPECT_TRUE(keys.pieces(kTest + std::string(" and a little more")).empty());
  EXPECT_EQ(keys.pieces("one two three four").size(), 1);  // too few words to be looked at
}

TEST(NgramKeys, CommonPhrasesStay) {
  NgramKeys keys({.key_threshold = 2});
  keys.add_text(kTest);
  keys.add_text("another text of exactly eight words in all");
  const std::vector<std::size_t> found =
      keys.in_text(std::string("Before it: ") + kTest + " and " + kTest + " again.");
  EXPECT_EQ(found, std::vector<std::size_t>{0});
  keys.remove_common({2, 1});
  ASSERT_EQ(keys.size(), 1);
  EXPECT_EQ(keys.pieces(std::string(kTest) + " and more").size(), 1);
}

}  // namespace
}  // namespace bloomery
