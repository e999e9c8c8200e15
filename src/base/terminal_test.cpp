#include "base/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <span>
#include <string>

namespace bloomery {
namespace {

std::string logged(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

TEST(LogThreshold, DecidesWhatIsWrittenWhileItLives) {
  const Log log;
  {
    const LogThreshold quiet(LogLevel::warning);
    EXPECT_EQ(least_logged(), LogLevel::warning);
    EXPECT_EQ(logged([&] { log.info("unimportant"); }), "");
    EXPECT_NE(logged([&] { log.warning("important"); }).find("important"), std::string::npos);
  }
  EXPECT_EQ(least_logged(), LogLevel::info);
  EXPECT_NE(logged([&] { log.info("back"); }).find("back"), std::string::npos);
  const auto detail = [] { Log(0, 1, LogLevel::debug).write(LogLevel::debug, "detail"); };
  EXPECT_EQ(logged(detail), "");
  const LogThreshold verbose(LogLevel::debug);
  EXPECT_NE(logged(detail).find("detail"), std::string::npos);
}

TEST(Log, ALineHasLevelTimeAndRank) {
  std::string line = logged([] { Log(1, 2).warning("3 of ", 4); });
  ASSERT_EQ(line.size(), std::string("W 00:00:00 [rank 1] 3 of 4\n").size()) << line;
  for (char& c : std::span(line).subspan(2, 8)) {
    if (c >= '0' && c <= '9') c = '0';
  }
  EXPECT_EQ(line, "W 00:00:00 [rank 1] 3 of 4\n");
  EXPECT_EQ(logged([] { Log().info("alone"); }).substr(10), " alone\n");
}

TEST(Terminal, NoColorInTheEnvironmentCounts) {
  const char* before = std::getenv("NO_COLOR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colour());
  setenv("NO_COLOR", "", 1);  // empty counts as absent
  EXPECT_TRUE(wants_colour());
  kept.empty() ? unsetenv("NO_COLOR") : setenv("NO_COLOR", kept.c_str(), 1);
}

TEST(Terminal, ColumnsOfWideAndCombiningCharacters) {
  EXPECT_EQ(columns_of("data.jsonl"), 10u);
  EXPECT_EQ(columns_of("\u65e5\u672c\u8a9e.txt"), 10u);
  EXPECT_EQ(columns_of("\U0001F642\ud55c\uff21"), 6u);
  EXPECT_EQ(columns_of("e\u0301\u00e9\u2588\u2026"), 4u);
  EXPECT_EQ(columns_of("\xff\x80x"), 3u);  // no UTF-8
  EXPECT_EQ(columns_of("\xe6\x97"), 2u);
  EXPECT_EQ(columns_of(""), 0u);
}

TEST(Terminal, BeginningsThatFit) {
  const std::string_view text = "a\u65e5b\u672c";
  for (const auto& [columns, expected] : {std::pair<std::size_t, std::string_view>{0, ""},
                                          {1, "a"},
                                          {2, "a"},
                                          {3, "a\u65e5"},
                                          {4, "a\u65e5b"},
                                          {5, "a\u65e5b"},
                                          {6, text},
                                          {80, text}}) {
    EXPECT_EQ(first_columns(text, columns), expected) << columns;
  }
  EXPECT_EQ(first_columns("e\u0301x", 1), "e\u0301");
}

}  // namespace
}  // namespace bloomery
