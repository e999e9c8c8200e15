#include "tokenizer/bpe/scanners.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "harness/shared_data.h"

namespace bloomery {
namespace {

std::vector<std::size_t> ends_of_pieces(SplitPattern pattern, std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); at = ends.back()) {
    ends.push_back(piece_end(pattern, text, at));
  }
  return ends;
}

// tools/golden/split_patterns.py writes the file.
const nlohmann::json& golden() {
  static const nlohmann::json kGolden = nlohmann::json::parse(golden_file("split_patterns.json"));
  return kGolden;
}

TEST(Scanners, DivideAsTheReferenceEnginesDo) {
  for (const auto& test : golden()["cases"]) {
    const std::string text = test["text"];
    for (const auto& [name, regex] : golden()["patterns"].items()) {
      const auto expected = test[name].get<std::vector<std::size_t>>();
      ASSERT_EQ(ends_of_pieces(*pattern_named(name), text), expected)
          << name << " on " << test["text"];
    }
  }
}

TEST(Scanners, TextsWithoutTheirBytesBehindAreRead) {
  // Every prefix in memory of its exact size, so that a sanitizer sees a read past the end.
  const std::string text = "Letters and more letters, then 12345 numbers\r\n\r\n  don'";
  for (std::size_t length = 1; length <= text.size(); ++length) {
    const std::vector<char> exact(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    for (const std::string& name : pattern_names()) {
      const auto ends = ends_of_pieces(*pattern_named(name), {exact.data(), exact.size()});
      ASSERT_EQ(ends.back(), length);
    }
  }
}

TEST(Scanners, NoTextTakesQuadraticTime) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string unit :
       {" ", "\n", " \n", "A", "aA", "Aa", "中A", "\u0301A", "!", "'", "1"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    for (const std::string& name : pattern_names()) {
      ASSERT_EQ(ends_of_pieces(*pattern_named(name), text).back(), text.size());
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(KnownPattern, RecognisesTheExpressionsOfTheReferences) {
  for (const auto& [name, regex] : golden()["patterns"].items()) {
    EXPECT_EQ(known_pattern(regex.get<std::string>(), regex::Dialect::rust), pattern_named(name))
        << name;
  }
}

TEST(KnownPattern, RecognisesOtherSpellings) {
  EXPECT_EQ(
      known_pattern(
          R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"),
      SplitPattern::gpt2);
  EXPECT_EQ(
      known_pattern(
          R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
      SplitPattern::gpt2);
  EXPECT_EQ(
      known_pattern(
          R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"),
      SplitPattern::llama3);
}

TEST(KnownPattern, LeavesOthersAlone) {
  EXPECT_EQ(known_pattern(R"(\s+)"), std::nullopt);
  EXPECT_EQ(known_pattern(""), std::nullopt);
  // Digits in twos.
  EXPECT_EQ(
      known_pattern(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
      std::nullopt);
  EXPECT_EQ(pattern_named("gpt3"), std::nullopt);
}

}  // namespace
}  // namespace bloomery
