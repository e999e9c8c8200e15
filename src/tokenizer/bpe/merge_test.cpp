#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "tokenizer/bpe/part_merger.h"

namespace bloomery {
namespace {

using Parts = std::vector<std::uint32_t>;

// The definition: join the leftmost pair of the lowest rank until no pair joins.
Parts merged_by_definition(const MergeRules& rules, Parts parts) {
  for (;;) {
    std::uint32_t best = MergeRules::kNone;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::uint32_t found = rules.find(parts[i], parts[i + 1]);
      if (found == MergeRules::kNone) continue;
      if (best != MergeRules::kNone && rules.rank(found) >= rules.rank(best)) continue;
      best = found;
      at = i;
    }
    if (best == MergeRules::kNone) return parts;
    parts[at] = rules.result(best);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Random rules over few letters, with every other test some of equal rank, so that long texts merge
// a lot. Parts lie on both sides of the table for small ones.
MergeRules random_rules(std::mt19937& random, std::uint32_t letters, bool equal_ranks) {
  std::vector<MergeRule> rules;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto any = [&] {
      const std::uint32_t part = static_cast<std::uint32_t>(random()) % (letters + i);
      return part < letters ? part : part + 240;
    };
    rules.push_back({any(), any(), letters + i + 240});
    ranks.push_back(i / 2);
  }
  return MergeRules(rules, equal_ranks ? ranks : std::vector<std::uint32_t>());
}

TEST(PartMerger, FollowsTheDefinitionOnShortAndLongTexts) {
  std::mt19937 random(1);
  PartMerger merger;
  for (int round = 0; round < 400; ++round) {
    const auto letters = 2 + static_cast<std::uint32_t>(random() % 4);
    const MergeRules rules = random_rules(random, letters, round % 2 == 0);
    Parts parts(random() % 400);
    for (std::uint32_t& part : parts) part = static_cast<std::uint32_t>(random()) % letters;
    const Parts expected = merged_by_definition(rules, parts);
    parts.resize(merger.merge(rules, parts.data(), parts.size()));
    ASSERT_EQ(parts, expected);
  }
}

TEST(MergeRules, TheLastOfEqualPairsCounts) {
  const MergeRules rules({{0, 1, 2}, {500, 1, 3}, {0, 1, 4}, {500, 1, 5}});
  EXPECT_EQ(rules.result(rules.find(0, 1)), 4u);
  EXPECT_EQ(rules.result(rules.find(500, 1)), 5u);
  EXPECT_EQ(rules.find(1, 0), MergeRules::kNone);
  EXPECT_EQ(rules.find(1, 500), MergeRules::kNone);
}

TEST(MergeRules, RefusesWhatDoesNotFit) {
  EXPECT_NO_THROW(MergeRules({{0, 1, MergeRules::kMaxParts - 1}}));
  EXPECT_THROW(MergeRules({{0, 1, MergeRules::kMaxParts}}), Error);
  PartMerger merger;
  EXPECT_THROW(merger.merge(MergeRules(), nullptr, PartMerger::kMostParts + 1), Error);
}

}  // namespace
}  // namespace bloomery
