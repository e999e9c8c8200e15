#include <gtest/gtest.h>

#include "apps/common/command_case.h"
#include "apps/help/pages.h"
#include "base/terminal.h"

namespace bloomery {
namespace {

TEST(Help, TheSameAsTheFlag) {
  EXPECT_EQ(run_command({"help"}).out, run_command({"--help"}).out);
  EXPECT_EQ(run_command({"help", "bench", "ops"}).out, run_command({"bench", "ops", "--help"}).out);
  EXPECT_EQ(run_command({"help", "bench"}).out, run_command({"bench"}).out);
  EXPECT_EQ(run_command({"help", "benhc"}).code, kBadInput);
}

TEST(Help, EveryCommandListsItsOptions) {
  const CommandPage program = read_pages();
  int leaves = 0;
  for (const CommandPage* page : all_pages(program)) {
    if (!page->commands.empty() || page->name() == "help" || page->name() == "completion" ||
        page->name() == "man") {
      continue;
    }
    ++leaves;
    EXPECT_FALSE(page->usage.empty()) << page->path;
    EXPECT_GE(page->options.size(), 2u) << page->path;
    EXPECT_EQ(page->options.back().flag, "--config") << page->path;
    EXPECT_TRUE(run_command({"help", page->path.substr(0, page->path.find(' '))}).code == 0);
  }
  EXPECT_GE(leaves, 20);
}

TEST(Help, ShellsThatAreNotKnown) {
  const Outcome outcome = run_command({"completion", "bush"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("did you mean bash?")) << outcome.errors;
}

TEST(Help, QuietAndVerboseBelongToTheProgram) {
  EXPECT_EQ(run_command({"-q", "bench", "-v", "ops", "--help"}).code, 0);
  EXPECT_EQ(run_command({"bench", "--quiet"}).code, 0);
  EXPECT_EQ(least_logged(), LogLevel::info);  // nothing stays behind
  testing::internal::CaptureStderr();
  run_command({"doctor", "--json"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Help, ConfigFilesWorkForCommandsWithOptions) {
  const Outcome outcome = run_command({"doctor", "--config", "/no/such/file"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("/no/such/file")) << outcome.errors;
}

}  // namespace
}  // namespace bloomery
