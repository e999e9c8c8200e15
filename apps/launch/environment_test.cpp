#include "apps/launch/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "apps/common/command_case.h"
#include "apps/launch/watch.h"
#include "comm/error_case.h"
#include "comm/tcp/socket.h"

namespace bloomery {
namespace {

// What take_variables() throws for this input; what it left unread goes to `rest`.
std::string error_for(const std::string& input, std::string* rest = nullptr) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const Socket from(ends[0]);
  {
    const Socket to(ends[1]);
    EXPECT_EQ(write(to.descriptor(), input.data(), input.size()),
              static_cast<ssize_t>(input.size()));
  }
  std::string error = error_of([&] { take_variables(from.descriptor()); });
  char byte = 0;
  while (rest != nullptr && read(from.descriptor(), &byte, 1) == 1) {
    *rest += byte;
  }
  return error;
}

TEST(LaunchEnvironment, GoesOverAsItIs) {
  setenv("BLOOMERY_TEST_VARIABLE", "two\nlines, 'quotes' and = signs", 1);
  setenv("OTHER_TEST_VARIABLE", "stays here", 1);
  setenv("NAMED_TEST_VARIABLE", "of a file", 1);
  const std::string variables = carried_variables({{"NAMED_TEST_VARIABLE", ""}});
  EXPECT_FALSE(contains(variables, "OTHER_TEST_VARIABLE"));
  EXPECT_TRUE(contains(variables, "NAMED_TEST_VARIABLE=of a file"));
  unsetenv("BLOOMERY_TEST_VARIABLE");
  std::string rest;
  EXPECT_EQ(error_for(variables + "15\n", &rest), "");
  EXPECT_STREQ(std::getenv("BLOOMERY_TEST_VARIABLE"), "two\nlines, 'quotes' and = signs");
  EXPECT_EQ(rest, "15\n") << "orders follow";
  unsetenv("BLOOMERY_TEST_VARIABLE");
  unsetenv("OTHER_TEST_VARIABLE");
  unsetenv("NAMED_TEST_VARIABLE");
}

TEST(LaunchEnvironment, NamesThatTravel) {
  for (const char* const name : {"FI_PROVIDER", "UCX_TLS", "NCCL_DEBUG", "OMP_NUM_THREADS",
                                 "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "HOSTNAME"}) {
    const char* const before = std::getenv(name);
    const std::string value = before == nullptr ? "" : before;
    setenv(name, "x", 1);
    const std::string carried = carried_variables({});
    const bool travels = std::string(name) != "CUDA_VISIBLE_DEVICES" && *name != 'H';
    EXPECT_EQ(contains(carried, concat(name, "=x")), travels) << name;
    before == nullptr ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }
}

TEST(LaunchEnvironment, FilesOfVariables) {
  const Variables read =
      parse_environment("# comment\n\nA=1\n B = two words \nC=\"in quotes\"\nD=a=b\r\nE=\n", "env");
  EXPECT_EQ(
      read,
      (Variables{{"A", "1"}, {"B", "two words"}, {"C", "in quotes"}, {"D", "a=b"}, {"E", ""}}));
  EXPECT_EQ(error_of([] { parse_environment("A=1\nexport B=2", "env"); }),
            "env:2: 'export B=2' is not NAME=VALUE");
  EXPECT_EQ(error_of([] { parse_environment("A", "env"); }), "env:1: 'A' is not NAME=VALUE");
}

TEST(LaunchEnvironment, OtherInputIsRefused) {
  EXPECT_TRUE(contains(error_for(""), "--orders"));
  EXPECT_TRUE(contains(error_for("10\nshort"), "--orders"));
  EXPECT_TRUE(contains(error_for("many\n"), "'many' is no length"));
  EXPECT_TRUE(contains(error_for("999999999999\n"), "is no length"));
}

TEST(LaunchEnvironment, EveryLaunchHasASecretOfItsOwn) {
  unsetenv("BLOOMERY_SECRET");
  give_secret();
  const std::string first = std::getenv("BLOOMERY_SECRET");
  EXPECT_EQ(first.size(), 32);
  give_secret();
  EXPECT_EQ(std::getenv("BLOOMERY_SECRET"), first) << "one that was given stays";
  setenv("BLOOMERY_SECRET", "short", 1);
  EXPECT_TRUE(contains(error_of(give_secret), "32 hexadecimal digits"));
  unsetenv("BLOOMERY_SECRET");
  give_secret();
  EXPECT_NE(std::getenv("BLOOMERY_SECRET"), first);
  unsetenv("BLOOMERY_SECRET");
}

// More than a pipe holds, for a connection that ends at once.
TEST(Launch, VariablesThatNobodyReadsDoNotHinderTheEnd) {
  const PassedSignals signals;
  std::vector<Child> children;
  children.emplace_back(ChildCommand{.name = "far",
                                     .words = {"false"},
                                     .takes_orders = true,
                                     .first_order = std::string(1 << 20, 'x')});
  EXPECT_EQ(watch(children, signals, {}).code, 1);
}

TEST(Launch, AMisspelledCommandIsAMistakeBeforeAnythingStarts) {
  const std::string said =
      expect_command({"launch", "-n", "2", "pretrian", "--lr", "1"}, kBadInput);
  EXPECT_TRUE(contains(
      said, "'pretrian' is neither a bloomery command nor a program; did you mean pretrain?"))
      << said;
  EXPECT_TRUE(is_program("bash"));
  EXPECT_FALSE(is_program("no-such-program"));
  EXPECT_FALSE(is_program("/"));
}

}  // namespace
}  // namespace bloomery
