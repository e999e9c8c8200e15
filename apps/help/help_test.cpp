#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "apps/commands.h"
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

bool has_options(const CommandPage& page) { return !page.options.empty(); }

TEST(Help, CommandsStandInGroups) {
  const std::string page = run_command({"help"}).out;
  for (const char* part : {"\nstart:\n", "\ndata:\n", "\ntrain:\n", "\nevaluate and run:\n",
                           "\nconvert:\n", "\ninspect:\n", "\nexit codes:\n  0 "}) {
    EXPECT_NE(page.find(part), page.npos) << part << page;
  }
  EXPECT_EQ(page.find("preprocess_data"), page.npos);
}

TEST(Help, Topics) {
  const std::string compat = run_command({"help", "compat"}).out;
  EXPECT_NE(compat.find("\n  preprocess_data "), compat.npos) << compat;
  EXPECT_EQ(compat.find("\n  pretrain "), compat.npos) << compat;
  const std::string sizes = run_command({"help", "sizes"}).out;
  EXPECT_NE(sizes.find("      12      768     12  124M, gpt2\n"), sizes.npos) << sizes;
  EXPECT_NE(sizes.find("\n  llama "), sizes.npos) << sizes;
  EXPECT_NE(run_command({"help", "exit-codes"}).out.find("  75 "), std::string::npos);
}

TEST(Help, LinesFitTheTerminal) {
  const auto pages = read_pages();
  for (const CommandPage* page : all_pages(pages)) {
    std::istringstream words("help " + page->path);
    Arguments arguments;
    for (std::string word; words >> word;) {
      arguments.push_back(word);
    }
    std::istringstream lines(run_command(arguments).out);
    for (std::string line; std::getline(lines, line);) {
      const bool one_word = line.find(' ', line.find_first_not_of(' ')) == line.npos;
      EXPECT_TRUE(columns_of(line) <= 80 || one_word) << page->path << ": " << line;
    }
  }
}

bool is_compatible(const std::string& name) {
  return std::ranges::any_of(compatible_commands(),
                             [&](const Command& each) { return each.name == name; });
}

// Each has an example, and its options are those of the command. Names of other programs share the
// example of the command that they stand for.
TEST(Help, Examples) {
  const auto pages = read_pages();
  for (const CommandPage* page : all_pages(pages)) {
    if (!has_options(*page)) {
      continue;
    }
    const auto title = std::ranges::find(page->usage, "example:");
    ASSERT_TRUE(title != page->usage.end() && title + 1 != page->usage.end()) << page->path;
    const std::string example = *(title + 1);
    const bool is_alias = is_compatible(page->path);
    EXPECT_TRUE(is_alias || (example + " ").find("bloomery " + page->path + " ") != example.npos)
        << example;
    std::istringstream words(example);
    for (std::string word; words >> word && page->path != "launch";) {
      std::ranges::replace(word, '_', '-');  // the same letter in names of options
      EXPECT_TRUE(!word.starts_with("--") ||
                  std::ranges::find(page->options, word, &OptionLine::flag) != page->options.end())
          << page->path << ": " << word;
    }
  }
}

// Programs of Megatron's with data of their own.
TEST(Help, FamiliesHaveExamplesOfTheirOwn) {
  for (const std::string name : {"pretrain_bert", "pretrain_t5", "pretrain_ict"}) {
    const std::string page = run_command({"help", name}).out;
    EXPECT_NE(page.find("usage: bloomery " + name + " "), page.npos) << page;
    EXPECT_NE(page.find("\n  bloomery " + name + " --"), page.npos) << page;
  }
}

TEST(Help, FlagsThatTurnSomethingOffSayWhat) {
  const auto pages = read_pages();
  for (const CommandPage* page : all_pages(pages)) {
    for (const OptionLine& option : page->options) {
      EXPECT_FALSE(option.of.empty() && option.help.starts_with("The opposite of "))
          << page->path << " " << option.flag << ": " << option.help;
    }
  }
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
