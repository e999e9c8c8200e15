#include "comm/split.h"

#include <gtest/gtest.h>

#include "comm/threads.h"

namespace bloomery {
namespace {

TEST(SplitGroup, OrdersByKeyThenRankAndNumbersOfSharedRanksDiffer) {
  constexpr int kRanks = 6;
  std::vector<SplitGroup> first(kRanks), second(kRanks);
  std::vector<std::uint32_t> next(kRanks);
  run_ranks(kRanks, [&](int rank, const std::unique_ptr<Communicator>& world) {
    const auto place = static_cast<std::size_t>(rank);
    const std::vector<int> members = {0, 1, 2, 3, 4, 5};
    // Ranks that were in other groups before know of other numbers.
    next[place] = rank == 4 ? 7 : 1;
    first[place] = split_group(world->host(), members, rank % 2, rank < 2 ? 9 : 0, next[place]);
    second[place] = split_group(world->host(), members, 0, -rank, next[place]);
  });
  EXPECT_EQ(first[0].members, (std::vector<int>{2, 4, 0}));
  EXPECT_EQ(first[5].members, (std::vector<int>{3, 5, 1}));
  EXPECT_EQ(second[3].members, (std::vector<int>{5, 4, 3, 2, 1, 0}));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(first[rank].number, 7u);
    EXPECT_EQ(second[rank].number, 8u);
    EXPECT_EQ(next[rank], 9u);
  }
}

// The members of a group are named by their ranks in the world.
TEST(SplitGroup, OfAGroupIsOfItsWorldRanks) {
  run_ranks(2, [&](int rank, const std::unique_ptr<Communicator>& world) {
    std::uint32_t next = 1;
    const SplitGroup group = split_group(world->host(), {3, 8}, rank, 0, next);
    EXPECT_EQ(group.members, (std::vector<int>{rank == 0 ? 3 : 8}));
  });
}

}  // namespace
}  // namespace bloomery
