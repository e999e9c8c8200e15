// What every optimizer declares is saved, sharded, offloaded and taken up again.
#include <gtest/gtest.h>

#include "apps/bloomery.h"
#include "apps/pretrain/run_case.h"

namespace bloomery {
namespace {

class OptimizerRun : public RunCase, public ::testing::TestWithParam<const char*> {
 public:
  // Without clipping, of which the norm is summed in the order of the shards.
  Outcome train_with(const std::string& more) const {
    return train(
        concat("--optimizer ", GetParam(),
               " --clip-grad 0 --global-batch-size 4 --train-iters 9 --ranks-as-threads 2 ", more));
  }
};

TEST_P(OptimizerRun, ResumesBitForBitUnderOtherStagesOfZeroAndOffloaded) {
  for (const std::string dtype : {"", "--bf16"}) {
    const Outcome whole = train_with(dtype + " --zero-stage 1" + saved_in("whole" + dtype));
    ASSERT_EQ(whole.code, kFinished) << whole.errors;
    const std::string parts = "parts" + dtype;
    std::vector<std::string> found;
    int last = 0;
    for (const std::string& more :
         {std::string(" --zero-stage 0"), std::string(" --zero-stage 1 --cpu-optimizer"),
          std::string(" --zero-stage 3 --cpu-optimizer --remote-device cpu")}) {
      last += 3;
      const Outcome part =
          train_with(concat(dtype, more, " --exit-interval ", last, saved_in(parts)));
      ASSERT_EQ(part.code, last < 9 ? kStoppedEarly : kFinished) << part.errors;
      for (const std::string& loss : losses(part.out)) {
        found.push_back(loss);
      }
    }
    EXPECT_EQ(found, losses(whole.out)) << dtype;
    expect_same_checkpoints("whole" + dtype, parts);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerRun, ::testing::Values("adam", "sgd", "lion"));

class OtherOptimizer : public RunCase, public ::testing::Test {};

TEST_F(OtherOptimizer, OfARunIsRefusedAlsoWhereItsStateHasTheSameNames) {
  const std::string options = "--train-iters 4 --exit-interval 2 ";
  ASSERT_EQ(train(options + "--optimizer sgd" + saved_in("run")).code, kStoppedEarly);
  for (const char* other : {"adam", "lion"}) {
    const Outcome refused = train(concat(options, "--optimizer ", other, saved_in("run")));
    EXPECT_EQ(refused.code, kBadInput) << other;
    EXPECT_TRUE(refused.says("was saved by another kind of optimizer")) << refused.errors;
  }
}

}  // namespace
}  // namespace bloomery
