#include "tokenizer/train/bpe_trainer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/train/trained_files.h"

namespace bloomery {
namespace {

constexpr std::size_t kBytes = 256;

TEST(TrainBpe, MergesTheMostFrequentPairFirst) {
  WordCounts words;
  words.add("abc", 5);
  words.add("ab", 2);
  words.add("bc", 1);
  const TrainedBpe trained =
      train_bpe(words, {.vocab_size = 1000, .min_frequency = 1, .special_tokens = {}});
  // (a,b) comes 7 times; then (ab,c) 5 times; (b,c) is left once.
  ASSERT_EQ(trained.tokens.size(), kBytes + 3);
  EXPECT_EQ(trained.tokens[kBytes], "ab");
  EXPECT_EQ(trained.tokens[kBytes + 1], "abc");
  EXPECT_EQ(trained.tokens[kBytes + 2], "bc");
}

TEST(TrainBpe, EqualCountsGoBySmallestIds) {
  WordCounts words;
  for (const char* word : {"xy", "ab", "ba", "aa"}) {
    words.add(word, 3);
  }
  const TrainedBpe trained = train_bpe(words, {.min_frequency = 1, .special_tokens = {}});
  const std::vector<std::string> last(trained.tokens.begin() + kBytes, trained.tokens.end());
  EXPECT_EQ(last, (std::vector<std::string>{"aa", "ab", "ba", "xy"}));
}

TEST(TrainBpe, OverlappingPairsMergeFromTheLeft) {
  WordCounts words;
  words.add("aaaaa", 4);
  const TrainedBpe trained =
      train_bpe(words, {.min_frequency = 1, .special_tokens = {"<|endoftext|>"}});
  // aa aa a: (aa,aa) and (aa,a) come 4 times each, and a has the smaller id.
  const std::vector<std::string> last(trained.tokens.begin() + kBytes + 1, trained.tokens.end());
  EXPECT_EQ(last, (std::vector<std::string>{"aa", "aaa", "aaaaa"}));
  EXPECT_EQ(trained.tokens[0], "<|endoftext|>");
}

TEST(TrainBpe, StopsAtTheSizeAndAtTheFrequency) {
  WordCounts words;
  words.add("abcdef", 3);
  EXPECT_EQ(train_bpe(words, {.vocab_size = 258, .special_tokens = {}}).tokens.size(), 258U);
  EXPECT_EQ(train_bpe(words, {.min_frequency = 3, .special_tokens = {}}).tokens.size(), 261U);
  EXPECT_EQ(train_bpe(words, {.min_frequency = 4, .special_tokens = {}}).tokens.size(), 256U);
}

// A megabyte of one word: work must not grow with its square.
TEST(TrainBpe, LongWordsAreNotSlow) {
  std::string word;
  std::uint32_t state = 1;
  for (int i = 0; i < 1'000'000; ++i) {
    state = state * 1664525 + 1013904223;
    word += static_cast<char>('a' + (state >> 24) % 26);
  }
  WordCounts words;
  words.add(word);
  const TrainedBpe trained = train_bpe(words, {.vocab_size = 20'000, .special_tokens = {}});
  EXPECT_EQ(trained.tokens.size(), 20'000U);
}

TEST(TrainBpe, ImpossibleOptionsAreErrors) {
  const WordCounts words;
  EXPECT_THROW(train_bpe(words, {.vocab_size = 256}), Error);
  EXPECT_THROW(train_bpe(words, {.special_tokens = {"<s>", "<s>"}}), Error);
  EXPECT_THROW(train_bpe(words, {.special_tokens = {""}}), Error);
  EXPECT_THROW(train_bpe(words, {.special_tokens = {"\xFF"}}), Error);
}

TEST(TrainBpe, LearnsWhatTheReferenceTrainerLearns) {
  const char* root = std::getenv("BLOOMERY_ROOT");
  ASSERT_NE(root, nullptr) << "BLOOMERY_ROOT names the repository; ctest sets it";
  const auto cases = nlohmann::json::parse(
      read_file(std::filesystem::path(root) / "tests/golden/bpe_training.json"));
  ASSERT_FALSE(cases.empty());
  for (const nlohmann::json& one : cases) {
    WordCounts words;
    for (const std::string line : one["lines"]) {
      words.add_text(SplitPattern::gpt2, line);
    }
    const TrainedBpe trained =
        train_bpe(words, {one["vocab_size"], one["min_frequency"],
                          one["special_tokens"].get<std::vector<std::string>>()});
    EXPECT_EQ(trained.tokens, one["tokens"].get<std::vector<std::string>>());
    std::vector<std::pair<std::string, std::string>> merges;
    for (const auto& [left, right] : trained.merges) {
      merges.emplace_back(trained.tokens[static_cast<std::size_t>(left)],
                          trained.tokens[static_cast<std::size_t>(right)]);
    }
    EXPECT_EQ(merges, (one["merges"].get<std::vector<std::pair<std::string, std::string>>>()));
  }
}

TEST(WordCounts, AddsUpAndForgetsTheRarest) {
  WordCounts words;
  words.add_text(SplitPattern::gpt2, "one two two three three three a-very-long-word-of-its-own");
  words.add("a word of more than fifteen bytes", 7);
  words.add(std::string(15, 'x'), 2);
  words.add(std::string(16, 'x'), 2);
  std::map<std::string, std::uint64_t> seen;
  words.for_each([&](std::string_view word, std::uint64_t count) { seen.emplace(word, count); });
  EXPECT_EQ(seen.size(), words.size());
  EXPECT_EQ(seen.at(" two"), 2U);
  EXPECT_EQ(seen.at(" three"), 3U);
  EXPECT_EQ(seen.at("-"), 6U);
  EXPECT_EQ(seen.at("a word of more than fifteen bytes"), 7U);
  EXPECT_EQ(seen.at(std::string(16, 'x')), 2U);

  EXPECT_EQ(words.keep_most_frequent(words.size()), 0U);
  // Of the words that came twice not all fit: none of them stays.
  EXPECT_EQ(words.keep_most_frequent(4), 2U);
  EXPECT_EQ(words.size(), 3U);
}

TEST(TokenizerFiles, SpellTokensThatJsonEscapes) {
  WordCounts words;
  words.add("\"\\", 9);
  const TrainedBpe trained = train_bpe(words, {.vocab_size = 300});
  const auto file = nlohmann::json::parse(tokenizer_json(trained, SplitPattern::o200k));
  EXPECT_EQ(file["model"]["vocab"]["\"\\"], 257);
  EXPECT_EQ(file["model"]["merges"], nlohmann::json::parse(R"([["\"", "\\"]])"));
  EXPECT_EQ(nlohmann::json::parse(vocab_json(trained)), file["model"]["vocab"]);
  EXPECT_EQ(merges_txt(trained), "#version: 0.2\n\" \\\n");
}

// The expressions that are written are those that loading recognises as the same pattern.
TEST(TokenizerFiles, PatternsAreKnown) {
  for (const std::string& name : pattern_names()) {
    const SplitPattern pattern = *pattern_named(name);
    const auto file = nlohmann::json::parse(tokenizer_json(TrainedBpe{}, pattern));
    const nlohmann::json& splitter = file["pre_tokenizer"];
    if (splitter["type"] == "Sequence") {
      EXPECT_EQ(known_pattern(splitter["pretokenizers"][0]["pattern"]["Regex"].get<std::string>()),
                pattern);
    } else {
      EXPECT_EQ(splitter["use_regex"], pattern == SplitPattern::gpt2);
    }
  }
}

}  // namespace
}  // namespace bloomery
