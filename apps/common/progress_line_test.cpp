#include "apps/common/progress_line.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(ProgressLine, SaysWhatIsLeft) {
  EXPECT_EQ(progress_text(30, 120, 10, "steps"), "30 of 120 steps, 25 %, 0:30 left");
  EXPECT_EQ(progress_text(0, 120, 10, "steps"), "0 of 120 steps, 0 %");
  EXPECT_EQ(progress_text(7, 0, 61, "tokens"), "7 tokens in 1:01");
}

TEST(ProgressLine, IsSilentWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  ProgressLine line("steps");
  for (int i = 0; i < 3; ++i) {
    line.at(i, 3);
  }
  line.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace bloomery
