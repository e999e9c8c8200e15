#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/common/command_case.h"
#include "apps/serve/engine_room.h"

namespace bloomery {
namespace {

// The memory decides between room for one sequence and room for all.
TEST(Serve, CacheTokensFollowFromMemory) {
  const EngineOptions options{.num_sequences = 8, .capacity = 1000};  // 16 pages each
  constexpr std::size_t kPageBytes = 1 << 20;
  const auto tokens = [&](double bytes) { return cache_tokens(bytes, kPageBytes, options); };
  EXPECT_EQ(tokens(0), 16 * kCachePage);
  EXPECT_EQ(tokens(100.7 * kPageBytes), 100 * kCachePage);
  EXPECT_EQ(tokens(1e18), 8 * 16 * kCachePage);
  EXPECT_EQ(cache_tokens(1e18, 0, options), 8 * 16 * kCachePage);
}

// Before the model is loaded: it need not even be there.
TEST(Serve, APortOfAnotherServerIsCodeTwo) {
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  ASSERT_EQ(getsockname(other, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const Outcome outcome = run_command(
      {"serve", "--load", "nowhere", "--port", std::to_string(ntohs(address.sin_port))});
  close(other);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.says("already in use") && outcome.says("another --port")) << outcome.errors;
}

}  // namespace
}  // namespace bloomery
