#include "pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/simulate.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;
using Schedule = Instructions (*)(int, const PipelineShape&);

std::vector<Instructions> of_all_stages(Schedule schedule, int stages, std::int64_t micro_batches,
                                        int chunks = 1) {
  std::vector<Instructions> lists;
  for (int stage = 0; stage < stages; ++stage) {
    lists.push_back(schedule(stage, {stages, micro_batches, chunks}));
  }
  return lists;
}

TEST(PipelineSchedule, OneStageAlternates) {
  const Instructions expected = {
      {Work::forward, 0}, {Work::backward, 0}, {Work::forward, 1}, {Work::backward, 1}};
  EXPECT_EQ(one_forward_one_backward(0, {1, 2}), expected);
}

TEST(PipelineSchedule, TheFirstOfTwoStagesRunsAheadByOne) {
  const Instructions expected = {{Work::forward, 0},          {Work::send_activation, 0},
                                 {Work::forward, 1},          {Work::send_activation, 1},
                                 {Work::receive_gradient, 0}, {Work::backward, 0},
                                 {Work::receive_gradient, 1}, {Work::backward, 1}};
  EXPECT_EQ(one_forward_one_backward(0, {2, 2}), expected);
  EXPECT_EQ(steps(expected).size(), 7u) << "a send and a receive are one exchange";
}

TEST(PipelineSchedule, EveryMicroBatchGoesOnceForwardAndOnceBackWithoutDeadlock) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (std::int64_t micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      const Simulation plain =
          simulate(of_all_stages(one_forward_one_backward, stages, micro_batches));
      EXPECT_EQ(plain.problem, "") << stages << " x " << micro_batches;
      const Simulation split = simulate(of_all_stages(zero_bubble, stages, micro_batches));
      EXPECT_EQ(split.problem, "") << stages << " x " << micro_batches;
      const Simulation forward =
          simulate(of_all_stages(forward_only, stages, micro_batches), 1, false);
      EXPECT_EQ(forward.problem, "") << stages << " x " << micro_batches;
      for (int stage = 0; stage < stages; ++stage) {
        const auto i = static_cast<std::size_t>(stage);
        EXPECT_EQ(plain.most_tapes[i], std::min<std::int64_t>(stages - stage, micro_batches));
        EXPECT_LE(split.most_tapes[i], std::min<std::int64_t>(stages, micro_batches));
      }
    }
  }
}

TEST(PipelineSchedule, GPipeKeepsAllTapes) {
  for (int stages = 1; stages <= 4; ++stages) {
    const Simulation all = simulate(of_all_stages(gpipe, stages, 6));
    EXPECT_EQ(all.problem, "");
    EXPECT_EQ(all.most_tapes, std::vector<int>(static_cast<std::size_t>(stages), 6));
  }
}

TEST(PipelineSchedule, ChunksAreInterleavedWithoutDeadlock) {
  for (int stages = 2; stages <= 5; ++stages) {
    for (int chunks = 2; chunks <= 4; ++chunks) {
      for (int groups = 1; groups <= 4; ++groups) {
        const std::int64_t count = std::int64_t{groups} * stages;
        const auto name = concat(stages, " stages, ", chunks, " chunks, ", count, " micro-batches");
        const Simulation training =
            simulate(of_all_stages(one_forward_one_backward, stages, count, chunks), chunks);
        EXPECT_EQ(training.problem, "") << name;
        const Simulation forward =
            simulate(of_all_stages(forward_only, stages, count - 1, chunks), chunks, false);
        EXPECT_EQ(forward.problem, "") << name;
      }
    }
  }
}

// The time that stages wait, as a share of the time that they work, is what theory says.
TEST(PipelineSchedule, BubblesAreThoseOfTheory) {
  for (const int stages : {2, 4, 8, 64}) {
    for (const std::int64_t groups : {1, 2, 5}) {
      const std::int64_t count = groups * stages;
      const double classic = static_cast<double>(stages - 1) / static_cast<double>(count);
      const auto bubble = [&](Schedule schedule, int chunks) {
        const Simulation all = simulate(of_all_stages(schedule, stages, count, chunks), chunks);
        EXPECT_EQ(all.problem, "");
        return all.bubble();
      };
      EXPECT_NEAR(bubble(gpipe, 1), classic, 1e-9);
      EXPECT_NEAR(bubble(one_forward_one_backward, 1), classic, 1e-9);
      EXPECT_NEAR(bubble(one_forward_one_backward, 2), classic / 2, 1e-9);
      EXPECT_NEAR(bubble(one_forward_one_backward, 4), classic / 4, 1e-9);
      EXPECT_NEAR(bubble(zero_bubble, 1), classic / 3,
                  1e-9);  // all three passes take the same time
    }
  }
}

TEST(PipelineSchedule, RefusesWhatCannotBeInterleaved) {
  EXPECT_EQ(problem(PipelineSchedule::zero_bubble, {4, 8, 1}), "");
  EXPECT_NE(problem(PipelineSchedule::zero_bubble, {4, 8, 2}), "");
  EXPECT_NE(problem(PipelineSchedule::one_forward_one_backward, {4, 9, 2}), "");
  EXPECT_NE(problem(PipelineSchedule::one_forward_one_backward, {1, 8, 2}), "");
  EXPECT_THROW(instructions(PipelineSchedule::gpipe, 0, {4, 8, 2}), Error);
}

TEST(PipelineSchedule, RefusesImpossibleStages) {
  EXPECT_THROW(one_forward_one_backward(2, {2, 4}), Error);
  EXPECT_THROW(zero_bubble(0, {1, 0}), Error);
}

// Two chunks per stage: the last stage sends its first chunk's output to the first stage.
TEST(PipelineSimulation, ChunksGoRoundTheStages) {
  const std::vector<Instructions> lists = {{{Work::forward, 0, 0},
                                            {Work::send_activation, 0, 0},
                                            {Work::receive_activation, 0, 1},
                                            {Work::forward, 0, 1},
                                            {Work::send_activation, 0, 1},
                                            {Work::receive_gradient, 0, 1},
                                            {Work::backward, 0, 1},
                                            {Work::send_gradient, 0, 1},
                                            {Work::receive_gradient, 0, 0},
                                            {Work::backward, 0, 0}},
                                           {{Work::receive_activation, 0, 0},
                                            {Work::forward, 0, 0},
                                            {Work::send_activation, 0, 0},
                                            {Work::receive_activation, 0, 1},
                                            {Work::forward, 0, 1},
                                            {Work::backward, 0, 1},
                                            {Work::send_gradient, 0, 1},
                                            {Work::receive_gradient, 0, 0},
                                            {Work::backward, 0, 0},
                                            {Work::send_gradient, 0, 0}}};
  const Simulation result = simulate(lists, 2);
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.most_tapes, (std::vector<int>{2, 2}));
}

// Whatever is taken out of a list that works, or changes its place, is found.
TEST(PipelineSimulation, FindsWhatIsMissing) {
  for (const Schedule schedule : {one_forward_one_backward, zero_bubble, gpipe}) {
    const std::vector<Instructions> good = of_all_stages(schedule, 3, 4);
    for (std::size_t stage = 0; stage < good.size(); ++stage) {
      for (std::size_t i = 0; i < good[stage].size(); ++i) {
        std::vector<Instructions> bad = good;
        bad[stage].erase(bad[stage].begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_NE(simulate(bad).problem, "") << stage << ' ' << i;
      }
    }
  }
}

TEST(PipelineSimulation, FindsDeadlocksAndMessagesOutOfOrder) {
  std::vector<Instructions> lists = of_all_stages(one_forward_one_backward, 2, 4);
  ASSERT_EQ(lists[0][4], (Instruction{Work::receive_gradient, 0}));
  std::swap(lists[0][1], lists[0][4]);  // before the activation was sent that it is a gradient of
  EXPECT_NE(simulate(lists).problem.find("waits forever"), std::string::npos)
      << simulate(lists).problem;

  lists = of_all_stages(one_forward_one_backward, 2, 4);
  for (Instruction& i : lists[1]) {
    if (i.micro_batch <= 1 && i.work == Work::receive_activation) {
      i.micro_batch = 1 - i.micro_batch;
    }
  }
  EXPECT_NE(simulate(lists).problem.find("gets another message"), std::string::npos)
      << simulate(lists).problem;
}

}  // namespace
}  // namespace bloomery
