#include "base/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
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

TEST(Terminal, NoColorInTheEnvironmentCounts) {
  const char* before = std::getenv("NO_COLOR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colour());
  setenv("NO_COLOR", "", 1);  // empty counts as absent
  EXPECT_TRUE(wants_colour());
  kept.empty() ? unsetenv("NO_COLOR") : setenv("NO_COLOR", kept.c_str(), 1);
}

}  // namespace
}  // namespace bloomery
