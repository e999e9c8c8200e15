#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "tokenizer/bpe/merge_rules.h"
#include "tokenizer/bpe/text_joins.h"

namespace bloomery {
namespace {

using Parts = std::vector<std::uint32_t>;

// The definition: join the leftmost pair of the lowest rank until no pair joins.
Parts merged_by_definition(const MergeRules& rules, Parts parts) {
  for (;;) {
    Join best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const Join found = rules.find(parts[i], parts[i + 1]);
      if (found.rank >= best.rank) continue;
      best = found;
      at = i;
    }
    if (best.rank == Join::kNever) return parts;
    parts[at] = best.part;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Random rules over few letters, so that long texts merge a lot.
MergeRules random_rules(std::mt19937& random, std::uint32_t letters) {
  std::vector<MergeRule> rules;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto any = [&] { return static_cast<std::uint32_t>(random()) % (letters + i); };
    rules.push_back({any(), any(), letters + i});
  }
  return MergeRules(rules);
}

TEST(PartMerger, FollowsTheDefinitionOnShortAndLongTexts) {
  std::mt19937 random(1);
  PartMerger merger;
  for (int round = 0; round < 400; ++round) {
    const auto letters = 2 + static_cast<std::uint32_t>(random() % 4);
    const MergeRules rules = random_rules(random, letters);
    Parts parts(random() % 400);
    for (std::uint32_t& part : parts) part = static_cast<std::uint32_t>(random()) % letters;
    const Parts expected = merged_by_definition(rules, parts);
    parts.resize(merger.merge([&](std::size_t left, std::size_t right,
                                  std::size_t) { return rules.find(parts[left], parts[right]); },
                              parts.data(), parts.size()));
    ASSERT_EQ(parts, expected);
  }
}

// Parts as ids, with all divisions of a token allowed and with some of equal rank.
TEST(TextJoins, FollowTheDefinitionByRanksOfTokens) {
  std::mt19937 random(2);
  PartMerger merger;
  for (int round = 0; round < 400; ++round) {
    Vocabulary tokens;
    std::vector<std::uint32_t> ranks;
    for (const char* letter : {"a", "b", "c"}) {
      tokens.add(letter, static_cast<TokenId>(ranks.size()));
      ranks.push_back(Join::kNever);
    }
    while (ranks.size() < 30) {
      std::string token;
      for (std::size_t i = 2 + random() % 3; i > 0; --i) token += "abc"[random() % 3];
      if (tokens.find(token)) continue;
      tokens.add(token, static_cast<TokenId>(ranks.size()));
      ranks.push_back(static_cast<std::uint32_t>(random() % 12));
    }
    const TextJoins joins = TextJoins::by_rank(ranks);
    std::vector<std::string> expected;
    std::string text;
    for (std::size_t i = random() % 300; i > 0; --i) {
      text += "abc"[random() % 3];
      expected.emplace_back(1, text.back());
    }
    for (;;) {
      std::uint32_t best = Join::kNever;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
        const auto found = tokens.find(expected[i] + expected[i + 1]);
        if (!found || ranks[static_cast<std::size_t>(*found)] >= best) continue;
        best = ranks[static_cast<std::size_t>(*found)];
        at = i;
      }
      if (best == Join::kNever) break;
      expected[at] += expected[at + 1];
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    Parts parts;
    for (const char letter : text) parts.push_back(static_cast<std::uint32_t>(letter - 'a'));
    parts.resize(merger.merge(
        [&](std::size_t left, std::size_t right, std::size_t end) {
          return joins.find(tokens, std::string_view(text).substr(left, end - left), right - left);
        },
        parts.data(), parts.size()));
    ASSERT_EQ(parts.size(), expected.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ASSERT_EQ(tokens.piece(static_cast<TokenId>(parts[i])), expected[i]);
    }
  }
}

TEST(TextJoins, TheLastOfEqualMergesCounts) {
  Vocabulary tokens;
  tokens.add("abc", 0);
  TextJoins joins;
  joins.add(0, 1);
  joins.add(0, 2);
  joins.add(0, 1);
  EXPECT_EQ(joins.find(tokens, "abc", 1).rank, 2u);
  EXPECT_EQ(joins.find(tokens, "abc", 2).rank, 1u);
  EXPECT_EQ(joins.find(tokens, "ab", 1).rank, Join::kNever);
}

TEST(MergeRules, TheLastOfEqualPairsCounts) {
  const MergeRules rules({{0, 1, 2}, {500, 1, 3}, {0, 1, 4}, {500, 1, 5}});
  EXPECT_EQ(rules.find(0, 1).part, 4u);
  EXPECT_EQ(rules.find(500, 1).part, 5u);
  EXPECT_EQ(rules.find(1, 0).rank, Join::kNever);
  EXPECT_EQ(rules.find(1, 500).rank, Join::kNever);
}

TEST(MergeRules, RefusesWhatDoesNotFit) {
  EXPECT_NO_THROW(MergeRules({{0, 1, MergeRules::kMaxParts - 1}}));
  EXPECT_THROW(MergeRules({{0, 1, MergeRules::kMaxParts}}), Error);
  PartMerger merger;
  const auto never = [](std::size_t, std::size_t, std::size_t) { return Join{}; };
  EXPECT_THROW(merger.merge(never, nullptr, PartMerger::kMostParts + 1), Error);
}

}  // namespace
}  // namespace bloomery
