#include "train/run/skipped_steps.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

constexpr StepReport kGood{}, kSkipped{.skipped = true};

TEST(SkippedSteps, WarnsOnceThenEnds) {
  SkippedSteps steps({.skipped_until_warning = 3, .skipped_until_stop = 5}, false, {});
  for (int i = 1; i <= 2; ++i) steps.add(i, kSkipped);
  steps.add(3, kGood);
  for (int i = 4; i <= 8; ++i) {
    const SkippedSteps::Finding found = steps.add(i, kSkipped);
    EXPECT_EQ(found.warning.empty(), i != 6) << i;
    EXPECT_EQ(found.end.empty(), i != 8) << i;
    if (i == 6) {
      EXPECT_TRUE(found.warning.starts_with("3 steps in a row, from iteration 4 on, were skipped"))
          << found.warning;
    }
  }
}

TEST(SkippedSteps, ZeroSwitchesOff) {
  SkippedSteps steps({.skipped_until_warning = 0, .skipped_until_stop = 0}, false, {});
  steps.add(1, kGood);
  for (int i = 2; i <= 1000; ++i) {
    const SkippedSteps::Finding found = steps.add(i, kSkipped);
    EXPECT_TRUE(found.warning.empty() && found.end.empty()) << i;
  }
  EXPECT_EQ(steps.at_end(), "");
}

TEST(SkippedSteps, RunThatEndsWithoutLearningHasDiverged) {
  const StopOptions stop{.skipped_until_warning = 3, .skipped_until_stop = 5};
  SkippedSteps all(stop, false, {});
  EXPECT_EQ(all.at_end(), "") << "nothing was trained";
  all.add(1, kSkipped);
  EXPECT_NE(all.at_end(), "");
  SkippedSteps few(stop, false, {});
  few.add(1, kGood);
  few.add(2, kSkipped);
  few.add(3, kSkipped);
  EXPECT_EQ(few.at_end(), "");
  few.add(4, kSkipped);
  EXPECT_NE(few.at_end(), "");
}

TEST(SkippedSteps, ScaleThatCanStillFallIsNoDivergence) {
  LossScaleOptions scale = dynamic_loss_scale();
  SkippedSteps steps({.skipped_until_warning = 3, .skipped_until_stop = 0}, true, scale);
  for (int i = 1; i <= 20; ++i) {
    const SkippedSteps::Finding found = steps.add(i, {.skipped = true, .loss_scale = 1024});
    EXPECT_TRUE(found.warning.empty() && found.end.empty());
  }
  EXPECT_EQ(steps.at_end(), "");
  EXPECT_EQ(steps.add(21, {.skipped = true, .loss_scale = 1}).end, "");
  EXPECT_NE(steps.add(22, {.skipped = true, .loss_scale = 1, .scale_exhausted = true}).end, "");
}

}  // namespace
}  // namespace bloomery
