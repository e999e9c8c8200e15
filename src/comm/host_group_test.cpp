#include "comm/host_group.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "comm/gather_at.h"
#include "comm/tcp/tcp_case.h"
#include "comm/threads.h"

namespace bloomery {
namespace {

using Texts = std::vector<std::string>;

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void check_calls(HostGroup& host, int size) {
  const int rank = host.rank();
  ASSERT_EQ(host.size(), size);
  Texts expected;
  for (int i = 0; i < size; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i * 1000), 'x') + '\0' + "end");
  }
  EXPECT_EQ(host.gather("texts", expected[static_cast<std::size_t>(rank)]), expected);
  EXPECT_EQ(host.gather("texts", {}), Texts(static_cast<std::size_t>(size)));
  for (int root = 0; root < size; ++root) {
    EXPECT_EQ(host.broadcast("facts", concat("from ", rank), root), concat("from ", root));
  }
  EXPECT_TRUE(host.any("wish", rank == size - 1));
  EXPECT_FALSE(host.any("wish", false));
  for (int root = 0; root < size; ++root) {
    const std::string mine = concat(root, " gets it from ", rank);
    const Texts all = gather_at(host, root, "parts", mine);
    EXPECT_EQ(all.size(), rank == root ? static_cast<std::size_t>(size) : 0u);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i], concat(root, " gets it from ", i));
    }
  }
  const auto numbers = host.gather_numbers("numbers", {rank + 0.1, 1e300});
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(size));
  EXPECT_EQ(numbers.back(), (std::vector<double>{size - 1 + 0.1, 1e300}));
  host.barrier("barrier");
  EXPECT_THROW(host.broadcast("facts", {}, size), Error);
}

TEST(SelfHostGroup, GathersInRankOrderAndBroadcasts) { check_calls(*make_self_host_group(), 1); }

enum class Kind { threads, tcp };
class HostGroups : public ::testing::TestWithParam<Kind> {
 protected:
  void on_ranks(int size, const std::function<void(int, std::unique_ptr<Communicator>)>& body) {
    if (GetParam() == Kind::threads) {
      run_ranks(size, body);
    } else {
      run_tcp_ranks(size, body);
    }
  }
};

TEST_P(HostGroups, GathersInRankOrderAndBroadcasts) {
  for (const int size : {1, 2, 5}) {
    on_ranks(size,
             [&](int, std::unique_ptr<Communicator> world) { check_calls(world->host(), size); });
  }
}

TEST_P(HostGroups, SplitsWithItsCommunicator) {
  on_ranks(4, [](int rank, std::unique_ptr<Communicator> world) {
    const auto pair = world->split(rank % 2, -rank);
    EXPECT_EQ(pair->host().gather("who", std::to_string(rank)),
              (Texts{std::to_string(rank % 2 + 2), std::to_string(rank % 2)}));
  });
}

// Manifests of large models are long: nobody gets a copy that does not need it, and what is sent
// in many pieces is not moved for each.
TEST_P(HostGroups, LongMessagesGoToOneRankInLinearTime) {
  constexpr std::size_t kBytes = std::size_t{40} << 20;
  on_ranks(3, [&](int rank, std::unique_ptr<Communicator> world) {
    const std::string mine(kBytes, "abc"[rank]);
    const Texts all = gather_at(world->host(), 1, "long", mine);
    if (rank == 1) {
      EXPECT_EQ(all.back().back(), 'c');
      EXPECT_EQ(all.front().size(), kBytes);
    }
    world->host().barrier("end");
  });
}

// Two threads of each rank speak at once, about different things and in different orders.
TEST_P(HostGroups, TopicsDoNotWaitForEachOther) {
  on_ranks(3, [](int rank, std::unique_ptr<Communicator> world) {
    HostGroup& host = world->host();
    const auto speak = [&](const std::string& topic) {
      for (int i = 0; i < 100; ++i) {
        const Texts all = host.gather(topic, concat(topic, i));
        EXPECT_EQ(all, Texts(3, concat(topic, i)));
      }
    };
    if (rank == 0) {  // one thread: all of one topic before the other
      std::thread second(speak, "manifest");
      second.join();
      speak("stop");
    } else {
      std::thread second(speak, "manifest");
      speak("stop");
      second.join();
    }
  });
}

TEST_P(HostGroups, ADeadlineNamesTheTopicAndWhoIsMissing) {
  std::vector<std::string> errors(3);
  std::latch told(2);
  on_ranks(3, [&](int rank, std::unique_ptr<Communicator> world) {
    if (rank != 1) {
      errors[static_cast<std::size_t>(rank)] =
          error_of([&] { world->host().barrier("start-up", 0.2); });
      told.count_down();
    } else {
      told.wait();
    }
  });
  for (const int rank : {0, 2}) {
    const std::string& error = errors[static_cast<std::size_t>(rank)];
    EXPECT_NE(error.find("waited 0.2 s in start-up for rank(s) 1"), std::string::npos) << error;
  }
}

TEST_P(HostGroups, AbortWakesThoseWhoWait) {
  std::string told;
  on_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
    if (rank == 0) {
      world->host().abort("operator said so");
    } else {
      told = error_of([&] { world->host().barrier("end"); });
    }
  });
  EXPECT_EQ(told, "rank 0 failed: operator said so");
}

INSTANTIATE_TEST_SUITE_P(All, HostGroups, ::testing::Values(Kind::threads, Kind::tcp),
                         [](const auto& info) {
                           return info.param == Kind::threads ? "threads" : "tcp";
                         });

}  // namespace
}  // namespace bloomery
