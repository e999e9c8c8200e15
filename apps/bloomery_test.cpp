#include <gtest/gtest.h>

#include <sstream>

#include "apps/common/command_case.h"

namespace bloomery {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Bloomery, VersionAndHelp) {
  EXPECT_TRUE(run_command({"--version"}).out.starts_with("bloomery "));
  for (const Arguments& arguments : {Arguments{}, {"--help"}, {"-h"}}) {
    const Outcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.out, "  bench")) << outcome.out;
  }
  EXPECT_TRUE(contains(run_command({"bench"}).out, "  ops"));
  EXPECT_TRUE(contains(run_command({"bench", "ops", "--help"}).out, "--micro-batch-size INTEGER"));
}

TEST(Bloomery, MistakesAreCodeTwoWithAHint) {
  const Outcome command = run_command({"benhc"});
  EXPECT_EQ(command.code, 2);
  EXPECT_TRUE(command.out.empty());
  EXPECT_TRUE(contains(command.errors, "unknown command 'benhc'; did you mean bench?"));

  const Outcome option = run_command({"bench", "ops", "--hiden-size", "12", "--seconds", "0"});
  EXPECT_EQ(option.code, 2);
  EXPECT_TRUE(contains(option.errors, "did you mean --hidden-size?")) << option.errors;
  EXPECT_TRUE(contains(option.errors, "--seconds: 0 is out of range")) << option.errors;

  const Outcome heads = run_command({"bench", "ops", "--num-attention-heads", "5"});
  EXPECT_EQ(heads.code, 2);
  EXPECT_TRUE(contains(heads.errors, "5 does not divide --hidden-size 768")) << heads.errors;

  const Outcome row = run_command({"bench", "ops", "--op", "atention"});
  EXPECT_EQ(row.code, 2);
  EXPECT_TRUE(contains(row.errors, "did you mean attention?")) << row.errors;
}

TEST(Bloomery, MessagesAreTextThatATerminalDoesNotObey) {
  const Outcome outcome =
      run_command({"generate", "--load", "a\x1b[31m\xff\xC3\xA9\x7f", "--prompt", "x"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.errors, "a\\x1b[31m\\xff\xC3\xA9\\x7f does not exist"))
      << outcome.errors;
}

TEST(Bloomery, OutputThatCannotBeWrittenIsCodeOne) {
  std::ostringstream out, errors;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(run_bloomery({"bench", "--help"}, out, errors), 1);
  EXPECT_TRUE(contains(errors.str(), "the output could not be written")) << errors.str();
}

// All rows at a tiny size: each kernel accepts what its row gives it.
TEST(Bloomery, BenchOpsRunsEveryRow) {
  for (const char* dtype : {"fp32", "bf16"}) {
    const Outcome outcome =
        run_command({"bench", "ops", "--device", "cpu", "--dtype", dtype, "--micro-batch-size", "2",
                     "--seq-length", "32", "--hidden-size", "64", "--num-attention-heads", "2",
                     "--vocab-size", "512", "--seconds", "1e-6", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_TRUE(contains(outcome.out, "\"op\":\"attention backward\"")) << outcome.out;
    EXPECT_FALSE(contains(outcome.out, "null")) << outcome.out;  // NaN or infinity
  }
}

}  // namespace
}  // namespace bloomery
