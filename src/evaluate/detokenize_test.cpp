#include "evaluate/detokenize.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "text/input/python_text.h"

namespace bloomery {
namespace {

TEST(Detokenize, WikitextByExample) {
  EXPECT_EQ(detokenize_wikitext(" = Robert Boulter = \n Robert Boulter is an English film , "
                                "television and theatre actor . He had a guest @-@ starring role "
                                "in 2 @,@ 000 ( the \" Mercury \" ) plays ; 4 @.@ 5 was 's \n"),
            " = Robert Boulter =\nRobert Boulter is an English film, television and theatre actor. "
            "He had a guest-starring role in 2,000 (the \"Mercury\") plays; 4.5 was's\n");
  EXPECT_EQ(detokenize_wikitext("= = = Head = = ="), "=== Head ===");
  EXPECT_EQ(detokenize_wikitext("( a\n )"), "(a)");                // across line ends
  EXPECT_EQ(detokenize_wikitext("( a ( b ) c )"), "(a ( b) c )");  // to the nearest closing one
  EXPECT_EQ(detokenize_wikitext("20 \u00b0 C"), "20\u00b0C");
}

TEST(Detokenize, TheFirstNameInThePathDecides) {
  const std::string text = "a @-@ b 's n't";
  EXPECT_EQ(detokenize(text, "/data/wiki.test.tokens"), "a-b's n't");
  EXPECT_EQ(detokenize(text, "/data/anything"), "a-b's n't");
  EXPECT_EQ(detokenize(text, "/wiki/ptb.txt"), detokenize_ptb(text));
  EXPECT_EQ(detokenize(text, "/wiki/lambada"), "a-b's n't");
  EXPECT_EQ(detokenize(text, "lambada.txt"), text);
}

// tools/golden/detokenize.py: 400 random texts.
TEST(Detokenize, EqualsPython) {
  std::ifstream lines(std::string(std::getenv("BLOOMERY_ROOT")) + "/tests/golden/detokenize.jsonl");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto row = nlohmann::json::parse(line);
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(detokenize_wikitext(text), row["wiki"].get<std::string>()) << line;
    EXPECT_EQ(detokenize_ptb(text), row["ptb"].get<std::string>()) << line;
    EXPECT_EQ(strip(text), row["strip"].get<std::string>()) << line;
    EXPECT_EQ(count_words(text), row["words"].get<std::int64_t>()) << line;
    EXPECT_EQ(last_word(text), row["last"].get<std::string>()) << line;
    EXPECT_EQ(count_pieces(text), row["pieces"].get<std::int64_t>()) << line;
  }
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace bloomery
