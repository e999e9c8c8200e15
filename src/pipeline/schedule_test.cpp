#include "pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

// Runs the stages' lists against each other as far as data dependencies allow; true when all end.
bool completes(int num_stages, std::int64_t num_micro_batches) {
  std::vector<std::vector<Instruction>> lists;
  for (int stage = 0; stage < num_stages; ++stage) {
    lists.push_back(one_forward_one_backward(stage, num_stages, num_micro_batches));
  }
  std::vector<std::size_t> at(lists.size(), 0);
  std::map<std::pair<int, std::int64_t>, bool> forward_done, backward_done;
  const auto ready = [&](int stage, const Instruction& i) {
    if (i.work == Work::forward) {
      return stage == 0 || forward_done[{stage - 1, i.micro_batch}];
    }
    return forward_done[{stage, i.micro_batch}] &&
           (stage == num_stages - 1 || backward_done[{stage + 1, i.micro_batch}]);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < num_stages; ++stage) {
      std::size_t& place = at[static_cast<std::size_t>(stage)];
      const auto& list = lists[static_cast<std::size_t>(stage)];
      while (place < list.size() && ready(stage, list[place])) {
        const Instruction& i = list[place++];
        (i.work == Work::forward ? forward_done : backward_done)[{stage, i.micro_batch}] = true;
        moved = true;
      }
    }
  }
  return std::equal(at.begin(), at.end(), lists.begin(),
                    [](std::size_t place, const auto& list) { return place == list.size(); });
}

TEST(PipelineSchedule, OneStageAlternates) {
  const std::vector<Instruction> expected = {
      {Work::forward, 0}, {Work::backward, 0}, {Work::forward, 1}, {Work::backward, 1}};
  EXPECT_EQ(one_forward_one_backward(0, 1, 2), expected);
}

TEST(PipelineSchedule, EveryMicroBatchGoesOnceForwardAndOnceBackWithoutDeadlock) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (std::int64_t micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      EXPECT_TRUE(completes(stages, micro_batches)) << stages << " x " << micro_batches;
      for (int stage = 0; stage < stages; ++stage) {
        const auto list = one_forward_one_backward(stage, stages, micro_batches);
        EXPECT_EQ(list.size(), static_cast<std::size_t>(2 * micro_batches));
        std::int64_t tapes = 0, most = 0;
        for (const Instruction& i : list) {
          tapes += i.work == Work::forward ? 1 : -1;
          most = std::max(most, tapes);
        }
        EXPECT_EQ(most, std::min<std::int64_t>(stages - stage, micro_batches));
      }
    }
  }
}

TEST(PipelineSchedule, RefusesImpossibleStages) {
  EXPECT_THROW(one_forward_one_backward(2, 2, 4), Error);
  EXPECT_THROW(one_forward_one_backward(0, 1, 0), Error);
}

}  // namespace
}  // namespace bloomery
