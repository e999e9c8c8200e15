#include "text/stories/grammar.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "text/stories/stories.h"
#include "text/stories/words.h"

namespace bloomery {
namespace {

// The message of the Error that the grammar gives; empty: it is good.
std::string fault(const std::string& text) {
  try {
    const Grammar grammar(text);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_fault(const std::string& text, const std::string& part) {
  const std::string message = fault(text);
  EXPECT_NE(message.find(part), std::string::npos) << text << "gives '" << message << "'";
}

constexpr const char* kChildren =
    "table child: name / he / sound\n"
    "  Mia / she / (ha|ho)\n"
    "  3*Tom / he / hum\n";

TEST(Grammar, RefusesAlternativesThatBeginAlike) {
  expect_fault("rule s\n  a (b c|b d)\n", "line 2: two alternatives begin with 'b'");
  expect_fault("rule s\n  <x> c\n  a d\nrule x\n  (a|b)\n",
               "line 1: two alternatives begin with 'a'");
  expect_fault("table t: x\n  a b\n  a c\nrule s\n  {v:t.x}\n",
               "line 5: two alternatives begin with 'a'");
  expect_fault(concat(kChildren, "rule s\n  {v:child.name} ({v.he} x|he y)\n"),
               "two alternatives begin with 'he'");
  EXPECT_EQ(fault("rule s\n  a (b c|d b)\n"), "");
}

TEST(Grammar, RefusesRecursionAndEmptyTexts) {
  expect_fault("rule s\n  a <s>\n", "recurs");
  expect_fault("rule s\n  a <x>\nrule x\n  b (c|d <s>)\n", "recurs");
  expect_fault("rule s\n  a (b|)\n", "line 2: an empty alternative");
  expect_fault("rule s\nrule x\n  a\n", "line 1: an empty rule");
  expect_fault("", "no rule");
}

TEST(Grammar, RefusesVariablesThatMayBeUnknownOrTwice) {
  const std::string child = kChildren;
  EXPECT_EQ(fault(child + "rule s\n  {v:child.name} and {v.he}\n"), "");
  expect_fault(child + "rule s\n  {v.he} and {v:child.name}\n", "v may not have been introduced");
  expect_fault(child + "rule s\n  ({v:child.name}|none) and {v.he}\n",
               "v may not have been introduced");
  expect_fault(child + "rule s\n  {v:child.name} and {v:child.he}\n",
               "v may have been introduced before");
  expect_fault(child + "rule s\n  ({v:child.name}|none) and {v:child.name}\n",
               "v may have been introduced before");
  EXPECT_EQ(fault(child + "rule s\n  ({v:child.name}|dear {v:child.name}) and {v.he}\n"), "");
  expect_fault(child + "rule s\n  {v.he}\n", "v has no table");
  expect_fault(child + "rule s\n  {v:child.age}\n", "no field age");
}

TEST(Grammar, RefusesWhatItCannotRead) {
  expect_fault("rule s\n  a (b|c\n", "a bracket is not closed");
  expect_fault("rule s\n  a ) b\n", "is out of place");
  expect_fault("rule s\n  a {b\n", "no }");
  expect_fault("rule s\n  a {b}\n", "{variable.field}");
  expect_fault("rule s\n  a <b>\n", "no rule b");
  expect_fault("rule s\n  a (0*b|c)\n", "a weight is");
  expect_fault("rule s\n  a (3b|c)\n", "a weight is");
  expect_fault("rule s\n  a_b\n", "is no word");
  expect_fault("rule s\n  a\nrule s\n  b\n", "a second rule s");
  expect_fault("  a\n", "belongs to no table or rule");
  expect_fault("table t: a / b\n  x\nrule s\n  y\n", "1 fields, the table has 2");
}

// A grammar small enough to list: Mia (1/4) she (ha|ho), Tom (3/4) he hum; then a (1/3) or b (2/3).
TEST(Grammar, ProbabilitiesAndEntropyByHand) {
  const StoryTeller teller(concat(kChildren,
                                  "rule s\n  {v:child.name} {v.he} {v.sound}, <end>\n"
                                  "rule end\n  a.\n  2*b\n    c.\n"));
  const auto nll = [&](std::string_view text) {
    const StoryTeller::Score score = teller.score(text);
    EXPECT_TRUE(score.accepted()) << score.fault;
    return score.nll;
  };
  EXPECT_NEAR(nll("Mia she ha, a."), -std::log(0.25 * 0.5 / 3), 1e-14);
  EXPECT_NEAR(nll("Tom he hum, b c."), -std::log(0.75 * 2 / 3), 1e-14);
  const auto h = [](double p) { return -p * std::log(p); };
  EXPECT_NEAR(teller.entropy(), h(0.25) + h(0.75) + 0.25 * std::log(2.0) + h(1.0 / 3) + h(2.0 / 3),
              1e-14);
  EXPECT_NEAR(teller.grammar().mean_length(), 6 + 2.0 / 3, 1e-14);
  for (const char* text : {"Mia he ha, a.", "Tom he ha, a.", "Tom he hum, c.", "Tom he hum a.",
                           "Tom he hum, a. a.", "Tom he hum , a.", " Tom he hum, a.", "", "Tom"}) {
    EXPECT_FALSE(teller.score(text).accepted()) << text;
  }
}

// Within the expansion of a record the variable is known, which the entropy must not average.
TEST(Grammar, EntropyOfRecordsThatMentionThemselves) {
  const StoryTeller teller(
      "table t: x / y / z\n  a / m {v.z} / (p|q)\n  b / n {v.z} / r\nrule s\n  {v:t.x} {v.y}\n");
  EXPECT_NEAR(teller.entropy(), 1.5 * std::log(2.0), 1e-14);
}

TEST(Words, TextsAndWordsGiveEachOtherBack) {
  const std::string text = "\"Oh no, my hat!\" cried Mia. \"Where is it?\" It's a well-known one.";
  const auto words = story_words(text);
  ASSERT_TRUE(words.has_value());
  EXPECT_EQ(words->size(), 22u);
  EXPECT_EQ(written(*words), text);
  for (const char* other : {"a  b", "a b ", " a", "a .", "a,b", "\" a\"", "a\tb", "a\n", "a1"}) {
    EXPECT_FALSE(story_words(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace bloomery
