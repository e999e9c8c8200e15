#include "tokenizer/bpe/merge.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace bloomery {
namespace {

// The definition: join the leftmost pair of the lowest rank until no pair merges.
std::vector<TokenId> merged_by_definition(const MergeTable& table, std::vector<TokenId> parts) {
  for (;;) {
    MergeTable::Found best{MergeTable::kNone, 0};
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const MergeTable::Found found = table.find(parts[i], parts[i + 1]);
      if (found.rank < best.rank) {
        best = found;
        at = i;
      }
    }
    if (best.rank == MergeTable::kNone) return parts;
    parts[at] = best.result;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Random merges over few letters, some of equal rank, so that long texts merge a lot.
std::vector<Merge> random_merges(std::mt19937& random, int letters, int count) {
  std::vector<Merge> merges;
  for (int i = 0; i < count; ++i) {
    const auto any = [&] { return static_cast<TokenId>(random() % (letters + i)); };
    merges.push_back({any(), any(), letters + i, i / 2});
  }
  return merges;
}

TEST(MergeTable, FollowsTheDefinitionOnShortAndLongTexts) {
  std::mt19937 random(1);
  MergeScratch scratch;
  for (int round = 0; round < 300; ++round) {
    const int letters = 2 + static_cast<int>(random() % 4);
    const MergeTable table(random_merges(random, letters, 40));
    std::vector<TokenId> parts(random() % 400);
    for (TokenId& part : parts) part = static_cast<TokenId>(random() % letters);
    const std::vector<TokenId> expected = merged_by_definition(table, parts);
    table.apply(parts, scratch);
    ASSERT_EQ(parts, expected);
  }
}

TEST(MergeTable, UnknownPairsDoNotMerge) {
  const Merge merges[] = {{0, 1, 2, 0}};
  const MergeTable table(merges);
  EXPECT_EQ(table.find(0, 1).result, 2);
  EXPECT_EQ(table.find(1, 0).rank, MergeTable::kNone);
}

TEST(MergeTable, RefusesPiecesWhosePlacesDoNotFit) {
  EXPECT_NO_THROW(check_num_parts(MergeTable::kMostParts));
  EXPECT_THROW(check_num_parts(MergeTable::kMostParts + 1), Error);
}

}  // namespace
}  // namespace bloomery
