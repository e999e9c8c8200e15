#include "apps/launch/hosts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

namespace bloomery {
namespace {

std::string text(const std::vector<HostSlots>& hosts) {
  std::string all;
  for (const HostSlots& host : hosts) {
    all += concat(host.name, ":", host.slots, " ");
  }
  return all;
}

std::string problem(const std::string& hostfile) {
  try {
    parse_hostfile(hostfile, "hosts");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Hosts, LinesOfDeepspeedAndOfMpi) {
  EXPECT_EQ(text(parse_hostfile("node1 slots=8\n\n# all of them\n  node2\tslots=4 # the second\n"
                                "10.0.0.3 slots=2 max_slots=4\nnode4",
                                "hosts")),
            "node1:8 node2:4 10.0.0.3:2 node4:1 ");
}

TEST(Hosts, MistakesNameTheLine) {
  EXPECT_EQ(problem("a slots=1\nb slots=two\n"),
            "hosts:2: 'slots=two' is not slots=N with a number above 0");
  EXPECT_EQ(problem("a 8"), "hosts:1: '8' is not slots=N with a number above 0");
  EXPECT_EQ(problem("a slots=4x"), "hosts:1: 'slots=4x' is not slots=N with a number above 0");
  EXPECT_EQ(problem("slots=4"), "hosts:1: 'slots=4' names no host; write `node1 slots=8`");
  EXPECT_EQ(problem("a slots=0"), "hosts:1: 'slots=0' is not slots=N with a number above 0");
  EXPECT_EQ(problem("a\n\na slots=2"), "hosts:3: the host a is listed twice");
  EXPECT_EQ(problem("# none\n"), "hosts: lists no host; give lines like `node1 slots=8`");
}

TEST(Hosts, ThisMachineIsKnownByItsNames) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_TRUE(is_this_machine(name));
  EXPECT_FALSE(is_this_machine("10.1.2.3"));
  EXPECT_FALSE(is_this_machine(""));
}

TEST(Hosts, WordsComeBackThroughAShell) {
  EXPECT_EQ(quoted("plain"), "'plain'");
  EXPECT_EQ(quoted("it's $HOME \"x\""), "'it'\\''s $HOME \"x\"'");
  EXPECT_EQ(quoted(""), "''");
}

}  // namespace
}  // namespace bloomery
