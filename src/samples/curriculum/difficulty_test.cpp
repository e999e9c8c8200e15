#include "samples/curriculum/difficulty.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

using Kind = DifficultySchedule::Kind;

DifficultySchedule linear(std::int64_t min, std::int64_t max, std::int64_t total,
                          std::int64_t step) {
  DifficultySchedule s;
  s.min = min;
  s.max = max;
  s.total_steps = total;
  s.difficulty_step = step;
  return s;
}

// Values that DeepSpeed's CurriculumScheduler gave; tests/long/curricula.py compares many more.
TEST(DifficultySchedule, GrowsAsDeepSpeeds) {
  DifficultySchedule s = linear(64, 1024, 45000, 8);
  EXPECT_EQ(s.at(374), 64);
  EXPECT_EQ(s.at(375), 72);
  EXPECT_EQ(s.at(22500), 544);
  EXPECT_EQ(s.at(44999), 1016);
  EXPECT_EQ(s.at(45000), 1024);
  EXPECT_EQ(s.constant_from(), 45000);
  s = linear(80, 2048, 110000, 8);
  s.kind = Kind::fixed_root;
  s.root = 2;
  EXPECT_EQ(s.at(1), 80);
  EXPECT_EQ(s.at(100), 136);
  EXPECT_EQ(s.at(27500), 1064);
}

TEST(DifficultySchedule, WhatIsNoMultipleIsReachedLaterAndTheStartIsRaised) {
  const DifficultySchedule s = linear(8, 50, 10, 8);
  EXPECT_EQ(s.at(10), 48);
  EXPECT_EQ(s.at(11), 48);
  EXPECT_EQ(s.at(12), 50);
  EXPECT_EQ(s.constant_from(), 12);
  EXPECT_EQ(linear(200, 512, 1800000, 16).at(0), 208);
  DifficultySchedule below = linear(200, 512, 1800000, 16);
  below.never_below_min = false;
  EXPECT_EQ(below.at(0), 192);
}

TEST(DifficultySchedule, ListsEndAtTheLastAndStayAtTheMaximum) {
  DifficultySchedule s;
  s.kind = Kind::fixed_discrete;
  s.min = 1;
  s.max = 9;
  s.difficulties = {1, 4, 9, 2};
  s.last_steps = {5, 10, 12};
  EXPECT_EQ(s.at(5), 1);
  EXPECT_EQ(s.at(6), 4);
  EXPECT_EQ(s.at(11), 9);
  EXPECT_EQ(s.at(100), 9);  // the maximum was reached
  s.max = 10;
  EXPECT_EQ(s.at(100), 2);
  EXPECT_EQ(s.constant_from(), 13);
}

TEST(DifficultySchedule, SaysWhatIsWrong) {
  EXPECT_TRUE(problems(linear(8, 64, 10, 8), "x").empty());
  EXPECT_EQ(problems(linear(0, 64, 10, 8), "x").size(), 1u);
  EXPECT_EQ(problems(linear(64, 8, 0, 0), "x").size(), 3u);
  DifficultySchedule s;
  s.kind = Kind::fixed_discrete;
  s.min = s.max = 1;
  EXPECT_EQ(problems(s, "x").size(), 1u);
}

TEST(DifficultySchedule, KnowsEveryValueAndWhenItSettles) {
  for (const double root : {1.0, 2.0, 3.5}) {
    DifficultySchedule s = linear(7, 90, 41, 4);
    s.kind = Kind::fixed_root;
    s.root = root;
    const std::vector<std::int64_t> values = s.values();
    for (std::int64_t step = 1; step < 200; ++step) {
      EXPECT_NE(std::find(values.begin(), values.end(), s.at(step)), values.end());
      EXPECT_EQ(s.at(step) == 90, step >= s.constant_from());
    }
  }
}

}  // namespace
}  // namespace bloomery
