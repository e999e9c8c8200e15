#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "comm/start/join.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

// The cores of each of so many ranks; a rank is bound to one core first if `core` names one.
std::vector<int> cores_of(int ranks, const std::function<int(int rank)>& core) {
  std::vector<int> cores(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](int rank, const std::unique_ptr<Communicator>& world) {
    if (const int bound = core(rank); bound >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(bound, &set);
      ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    }
    cores[static_cast<std::size_t>(rank)] = fair_cores(world->host());
  });
  return cores;
}

std::vector<int> usable() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) {
      cores.push_back(core);
    }
  }
  return cores;
}

TEST(FairCores, AreDividedAmongThoseWhoMayUseThem) {
  const int all = usable_cores();
  const auto free = [](int) { return -1; };
  EXPECT_EQ(cores_of(1, free), (std::vector<int>{all}));
  EXPECT_EQ(cores_of(2, free), std::vector<int>(2, std::max(1, all / 2)));
  EXPECT_EQ(cores_of(2 * all, free), std::vector<int>(static_cast<std::size_t>(2 * all), 1));
}

TEST(FairCores, ABoundRankHasItsCoreAndTheOthersWhatIsLeft) {
  const std::vector<int> cores = usable();
  if (cores.size() < 2) {
    GTEST_SKIP() << "one core";
  }
  const auto shares = cores_of(2, [&](int rank) { return rank == 0 ? cores[0] : -1; });
  EXPECT_EQ(shares[0], 1);
  EXPECT_EQ(shares[1], std::max<int>(1, static_cast<int>(cores.size()) - 1));
}

}  // namespace
}  // namespace bloomery
