// Who comes to a listener and does not say who he is.
#include "comm/tcp/pending_connections.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "comm/error_case.h"

namespace bloomery {
namespace {

class PendingConnectionsCase : public ::testing::Test {
 protected:
  Socket listener_ = listen_at("127.0.0.1", 0);
  const int port_ = port_of(listener_);
  PendingConnections pending_{std::move(listener_), 0.3};

  Socket come() const {
    return connect_to("127.0.0.1", port_, seconds_from_now(5), "the listener");
  }
  static void say(const Socket& socket, const Hello& hello) {
    send_all(socket, {reinterpret_cast<const char*>(&hello), sizeof hello});
  }
  // Who arrives within the time; like a rank it waits for all that the pending waits for.
  std::vector<int> arrivals(double seconds) {
    std::vector<int> ranks;
    for (const Deadline end = seconds_from_now(seconds); seconds_until(end) > 0;) {
      wait(20);
      for (const PendingConnections::Arrival& arrival : pending_.take()) {
        ranks.push_back(arrival.hello.rank);
      }
    }
    return ranks;
  }
  int wait(int milliseconds) {
    std::vector<pollfd> waits;
    pending_.add_waits(waits);
    return poll(waits.data(), waits.size(), milliseconds);
  }
  static bool was_closed(const Socket& socket) {
    char byte = 0;
    return recv_now(socket, byte) == 0;
  }
  static ssize_t recv_now(const Socket& socket, char& byte) {
    set_blocking(socket, false);
    return read(socket.descriptor(), &byte, 1);
  }
};

TEST_F(PendingConnectionsCase, ARankAmongIdleStrangersArrivesAndTheyAreSentAway) {
  std::vector<Socket> strangers;
  for (int i = 0; i < 230; ++i) {
    strangers.push_back(come());
  }
  const Socket rank = come();
  say(rank, {.rank = 3});
  EXPECT_EQ(arrivals(0.1), std::vector<int>{3});
  EXPECT_FALSE(was_closed(strangers.front()));
  EXPECT_EQ(wait(0), 0) << "idle strangers are no work";
  EXPECT_EQ(arrivals(0.4), std::vector<int>{});
  EXPECT_TRUE(was_closed(strangers.front()));
  EXPECT_TRUE(was_closed(strangers.back()));
}

TEST_F(PendingConnectionsCase, AHelloMayComeInPiecesButNotTooSlowly) {
  const Hello hello{.rank = 2};
  const std::string_view bytes(reinterpret_cast<const char*>(&hello), sizeof hello);
  const Socket rank = come(), slow = come();
  send_all(rank, bytes.substr(0, 10));
  send_all(slow, bytes.substr(0, 47));
  EXPECT_EQ(arrivals(0.05), std::vector<int>{});
  send_all(rank, bytes.substr(10));
  EXPECT_EQ(arrivals(0.4), std::vector<int>{2});
  EXPECT_TRUE(was_closed(slow));
}

TEST_F(PendingConnectionsCase, OtherProtocolsAreSentAwayAtOnce) {
  const Socket browser = come(), old = come();
  send_all(browser, std::string_view("GET / HTTP/1.1\r\n\r\n"));
  say(old, {.protocol = 0xB1000002});
  EXPECT_EQ(arrivals(0.1), std::vector<int>{});
  char byte = 0;
  EXPECT_LE(recv_now(browser, byte), 0);
  EXPECT_LE(recv_now(old, byte), 0);
}

TEST_F(PendingConnectionsCase, WithoutDescriptorsRanksWaitInTheQueue) {
  const Socket rank = come();
  say(rank, {.rank = 1});
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none{static_cast<rlim_t>(dup(rank.descriptor())),
                    limit.rlim_max};  // the least that is free
  close(static_cast<int>(none.rlim_cur));
  setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_EQ(pending_.take().size(), 0);
  EXPECT_EQ(wait(20), 0) << "the queue that cannot be served would keep the thread busy";
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(arrivals(0.4), std::vector<int>{1});
}

TEST_F(PendingConnectionsCase, ClosedItTakesNobody) {
  const Socket stranger = come();
  arrivals(0.05);
  pending_.close();
  EXPECT_EQ(wait(0), 0);
  EXPECT_TRUE(was_closed(stranger));
  EXPECT_NE(error_of([&] { connect_to("127.0.0.1", port_, seconds_from_now(0.05), "it"); }), "");
}

}  // namespace
}  // namespace bloomery
