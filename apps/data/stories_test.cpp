#include "text/stories/stories.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/common/command_case.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "base/file.h"

namespace bloomery {
namespace {

class StoriesCommandTest : public ::testing::Test {
 protected:
  StoriesCommandTest() { std::filesystem::create_directory(folder_); }
  ~StoriesCommandTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string run(Arguments arguments, int code = 0) {
    arguments.insert(arguments.begin(), {"data", "stories"});
    return expect_command(arguments, code);
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / concat("bloomery_stories_command_test_", getpid());
};

TEST_F(StoriesCommandTest, WritesTheStoriesOfTheSeed) {
  const auto told = nlohmann::json::parse(
      run({"--output", path("a.jsonl"), "--count", "200", "--seed", "5", "--json"}));
  EXPECT_EQ(told["stories"], 200);
  const StoryTeller teller;
  std::istringstream lines(read_file(path("a.jsonl")));
  std::string line;
  double nll = 0;
  std::uint64_t number = 0;
  for (; std::getline(lines, line); ++number) {
    const std::string text = nlohmann::json::parse(line)["text"];
    EXPECT_EQ(text, teller.story(5, number));
    nll += teller.score(text).nll;
  }
  EXPECT_EQ(number, 200u);
  EXPECT_NEAR(told["nll"].get<double>(), nll, 1e-6);
  run({"--output", path("b.jsonl"), "--count", "50", "--first", "150", "--seed", "5"});
  const std::string all = read_file(path("a.jsonl")), rest = read_file(path("b.jsonl"));
  EXPECT_TRUE(all.ends_with(rest));
}

TEST_F(StoriesCommandTest, ScoresWhatItWrote) {
  const auto told =
      nlohmann::json::parse(run({"--output", path("a.jsonl"), "--count", "100", "--json"}));
  const auto scored = nlohmann::json::parse(run({"--score", path("a.jsonl"), "--json"}));
  EXPECT_EQ(scored["total"], 100);
  EXPECT_EQ(scored["accepted"], 100);
  EXPECT_NEAR(scored["nll"].get<double>(), told["nll"].get<double>(), 1e-6);
  EXPECT_FALSE(scored.contains("stories"));
}

TEST_F(StoriesCommandTest, SaysWhatIsWrongWithEachText) {
  const std::string story = StoryTeller().story(1, 1);
  std::ofstream(path("a.txt")) << story << "\n\n" << story << " The end.\nOnce upon a dragon\n";
  const auto scored =
      nlohmann::json::parse(run({"--score", path("a.txt"), "--per-story", "--json"}));
  EXPECT_EQ(scored["total"], 3);
  EXPECT_EQ(scored["accepted"], 1);
  EXPECT_EQ(scored["stories"][0]["accepted"], true);
  EXPECT_EQ(scored["stories"][1]["accepted"], false);
  const std::string page = run({"--score", path("a.txt"), "--per-story"});
  EXPECT_NE(page.find("1: accepted, -ln P "), std::string::npos) << page;
  EXPECT_NE(page.find("2: rejected: "), std::string::npos) << page;
  EXPECT_NE(page.find("'The': the story ends here"), std::string::npos) << page;
  EXPECT_NE(page.find("'dragon': expected 'time'"), std::string::npos) << page;
  EXPECT_NE(page.find("accepted 1 of 3"), std::string::npos) << page;
}

TEST_F(StoriesCommandTest, CountsLinesWithoutTheTextAsRejected) {
  std::ofstream(path("a.jsonl")) << R"({"story": "Once upon"})"
                                 << "\n{broken\n";
  const auto scored = nlohmann::json::parse(run({"--score", path("a.jsonl"), "--json"}));
  EXPECT_EQ(scored["total"], 2);
  EXPECT_EQ(scored["accepted"], 0);
  const std::string page = run({"--score", path("a.jsonl"), "--json-key", "story", "--per-story"});
  EXPECT_NE(page.find("ends after 2 words"), std::string::npos) << page;
}

TEST_F(StoriesCommandTest, JoinsPromptsWithTheirContinuations) {
  const std::string story = StoryTeller().story(1, 1);
  const nlohmann::json line = {{"prompt", story.substr(0, 16)}, {"text", story.substr(16)}};
  std::ofstream(path("a.jsonl")) << line.dump() << "\n{\"text\": \"no prompt\"}\n";
  const auto joined =
      nlohmann::json::parse(run({"--score", path("a.jsonl"), "--prompt-key", "prompt", "--json"}));
  EXPECT_EQ(joined["total"], 2);
  EXPECT_EQ(joined["accepted"], 1);
  const auto apart = nlohmann::json::parse(run({"--score", path("a.jsonl"), "--json"}));
  EXPECT_EQ(apart["accepted"], 0);
}

TEST_F(StoriesCommandTest, ShowsStoriesAndRefusesNonsense) {
  EXPECT_EQ(run({"--count", "1", "--first", "3"}), StoryTeller().story(1234, 3) + "\n");
  run({"--count", "0"}, 2);
  run({"--output", path("a"), "--score", path("b")}, 2);
  run({"--score", path("none.jsonl")}, 2);
  EXPECT_NE(run({"--help"}).find("--score"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
