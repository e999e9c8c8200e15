#include "tokenizer/regex/regex.h"

#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

std::vector<Match> matches_of(const Regex& regex, std::string_view text) {
  std::vector<Match> matches;
  regex.find_all(text, matches);
  return matches;
}

std::size_t count(const std::string& expression, std::string_view text) {
  return matches_of(Regex(expression), text).size();
}

std::string message_of(const std::string& expression) {
  try {
    const Regex regex(expression);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// tools/golden/regex.py: what Oniguruma finds. Expressions that repeat what can be empty are
// refused.
TEST(Regex, FindsWhatTheReferenceFinds) {
  const auto golden = nlohmann::json::parse(golden_file("regex.json"));
  std::size_t refused = 0;
  for (const auto& item : golden) {
    std::unique_ptr<Regex> regex;
    try {
      regex = std::make_unique<Regex>(item["regex"].get<std::string>());
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("not supported"), std::string::npos) << error.what();
      ++refused;
      continue;
    }
    for (const auto& expected : item["cases"]) {
      const auto text = expected["text"].get<std::string>();
      nlohmann::json found = nlohmann::json::array();
      std::set<std::size_t> cuts;
      if (!text.empty()) cuts = {0, text.size()};
      for (const Match& match : text.empty() ? std::vector<Match>() : matches_of(*regex, text)) {
        cuts.insert({match.begin, match.end});
        if (match.begin < match.end) found.push_back({match.begin, match.end});
      }
      EXPECT_EQ(found, expected["matches"]) << item["regex"] << " on " << expected["text"];
      EXPECT_EQ(nlohmann::json(cuts), expected["cuts"])
          << item["regex"] << " on " << expected["text"];
    }
  }
  EXPECT_LT(refused, golden.size() / 2);
}

TEST(Regex, TiktokensDialect) {
  const Regex digits(R"(\p{N}{1,3}+1|\s+$)", regex::Dialect::rust);
  EXPECT_TRUE(matches_of(digits, "111").empty());   // gives nothing back
  EXPECT_TRUE(matches_of(digits, " \nb").empty());  // $ is the end of the text
  EXPECT_EQ(matches_of(digits, "1112 ").size(), 1u);
}

// Expressions and texts on which matching by trial takes exponential or quadratic time.
TEST(Regex, NoTextTakesLong) {
  const std::string letters(30'000, 'a'), digits(30'000, '7'), few(2000, 'a');
  const std::clock_t start = std::clock();
  EXPECT_EQ(count("(?:a|a)*b", letters), 0u);
  EXPECT_EQ(count("(?:ab?|a)*c", letters), 0u);
  EXPECT_EQ(count("(?=(?:ab?)*a)a", letters), letters.size());
  EXPECT_EQ(count(R"(\d{1,3}(?=(?:\d{3})*\b))", digits), digits.size() / 3);
  EXPECT_EQ(count(R"(\s+(?!\S)|\s+)", std::string(1'000'000, ' ')), 1u);
  EXPECT_EQ(count("(?:a+)+b", few), 0u);
  EXPECT_EQ(count("(?:a*a)+b", few), 0u);
  EXPECT_EQ(count("a+?b", few), 0u);
  EXPECT_LT(std::clock() - start, 30 * CLOCKS_PER_SEC);  // of the processor
  EXPECT_THROW(count("(?>a*)b", letters), Error);        // quadratic
}

TEST(Regex, WhatIsWrongIsSaid) {
  EXPECT_NE(message_of("a)").find("at byte 1"), std::string::npos);
  EXPECT_NE(message_of("(a").find("does not end"), std::string::npos);
  EXPECT_NE(message_of("[a").find("does not end"), std::string::npos);
  EXPECT_NE(message_of("*a").find("repetition of nothing"), std::string::npos);
  EXPECT_NE(message_of(R"((a)\1)").find("back references"), std::string::npos);
  EXPECT_NE(message_of(R"(\p{Klingon})").find("property"), std::string::npos);
  EXPECT_NE(message_of("(?:a?)*").find("can be empty"), std::string::npos);
  EXPECT_NE(message_of("(?i:ss)").find("(?i)"), std::string::npos);
  EXPECT_NE(message_of("(?<=a*)b").find("behind"), std::string::npos);
  EXPECT_NE(message_of("(?:(?:ab){1000}){1000}").find("too large"), std::string::npos);
  EXPECT_NE(message_of(std::string(150, '(') + std::string(150, ')')).find("deep"),
            std::string::npos);
}

}  // namespace
}  // namespace bloomery
