#include "text/lines/line_progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace bloomery {
namespace {

using Clock = LineProgress::Clock;

TEST(Progress, MegatronsLines) {
  std::ostringstream out;
  const Clock::time_point start = Clock::now();
  LineProgress progress(out, {.log_interval = 100}, start);
  progress.opened("a.jsonl");
  progress.advance(99, 1 << 20, 0, start + std::chrono::seconds(1));
  progress.advance(151, 7 << 20, 0, start + std::chrono::seconds(2));
  progress.finish();
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("Opening a.jsonl\nTime to startup: ")) << text;
  EXPECT_TRUE(text.ends_with("\nProcessed 200 documents (125 docs/s, 4 MB/s).\n")) << text;
}

TEST(Progress, BarWithRateAndTimeLeft) {
  std::ostringstream out;
  const Clock::time_point start = Clock::now();
  LineProgress progress(out, {.terminal = true, .total_bytes = 1000, .columns = 100}, start);
  progress.opened("a.jsonl");
  progress.advance(10, 2000000, 250, start + std::chrono::seconds(2));
  EXPECT_EQ(out.str(),
            "\r[#######.......................] 25%  ETA 0:06  10 documents  2.0 MB  1.0 MB/s  "
            "5 docs/s\x1B[K");
  progress.message("bad line");
  EXPECT_TRUE(out.str().ends_with("\r\x1B[Kbad line\n"));
}

// A line that is wider than the terminal would leave its beginning on it at each redrawing.
TEST(Progress, NoLineIsWiderThanTheTerminal) {
  const Clock::time_point start = Clock::now();
  for (const std::size_t columns : {2u, 10u, 40u, 60u, 71u, 80u, 120u}) {
    std::ostringstream out;
    LineProgress progress(out, {.terminal = true, .total_bytes = 1000, .columns = columns}, start);
    progress.advance(10, 2000000, 250, start + std::chrono::seconds(2));
    const std::string text = out.str();
    EXPECT_LT(text.size() - std::string("\r\x1B[K").size(), columns) << text;
    EXPECT_EQ(text.find("] 25%") != text.npos, columns >= 71) << text;
    EXPECT_EQ(text.find("docs/s") != text.npos, columns >= 60) << text;
  }
}

TEST(Progress, UnknownTotalHasNoBar) {
  std::ostringstream out;
  const Clock::time_point start = Clock::now();
  LineProgress progress(out, {.terminal = true}, start);
  progress.advance(3, 3000, 3000, start + std::chrono::seconds(1));
  EXPECT_EQ(out.str(), "\r3 documents  3.0 kB  3.0 kB/s  3 docs/s\x1B[K");
}

}  // namespace
}  // namespace bloomery
