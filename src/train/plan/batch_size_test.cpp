#include "train/plan/batch_size.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(BatchSize, Constant) {
  const BatchSize batch(288, {});
  EXPECT_EQ(batch.at(0), 288);
  EXPECT_EQ(batch.num_iterations(146484375), 508626);  // Megatron's log of the 7.5B model
  EXPECT_EQ(batch.num_samples(508626), 508626 * 288);
}

// Megatron's words, one step after another.
struct Simulated {
  std::int64_t iterations = 0, consumed = 0;
};
Simulated simulate(const BatchSize& batch, const Rampup& ramp, std::int64_t train_samples) {
  Simulated s;
  while (s.consumed <= ramp.samples) {
    s.consumed += batch.at(s.consumed);
    ++s.iterations;
  }
  s.iterations += (train_samples - s.consumed) / batch.global();
  return s;
}

TEST(BatchSize, RampupCountsAsMegatronDoes) {
  const Rampup ramps[] = {{16, 16, 5859375}, {32, 32, 1953125}, {1, 1, 1000}, {8, 24, 7},
                          {2, 3, 12345},     {4, 4, 100},       {16, 16, 16}};
  const std::int64_t globals[] = {1536, 256, 64, 80, 302, 400, 1536};
  for (std::size_t i = 0; i < std::size(ramps); ++i) {
    const BatchSize batch(globals[i], ramps[i]);
    const std::int64_t train = ramps[i].samples * 3 + 100000;
    EXPECT_EQ(batch.num_iterations(train), simulate(batch, ramps[i], train).iterations) << i;
    std::int64_t consumed = 0;
    for (std::int64_t step = 0; step < 3000; ++step) {  // samples after each step
      ASSERT_EQ(batch.num_samples(step), consumed) << i << " step " << step;
      consumed += batch.at(consumed);
    }
  }
}

TEST(BatchSize, RampupFollowsTheFormula) {
  const BatchSize batch(64, Rampup{16, 16, 300});  // three increments of 100 samples
  EXPECT_EQ(batch.at(0), 16);
  EXPECT_EQ(batch.at(99), 16);
  EXPECT_EQ(batch.at(100), 32);
  EXPECT_EQ(batch.at(299), 48);
  EXPECT_EQ(batch.at(300), 64);
  EXPECT_EQ(batch.at(301), 64);
  EXPECT_EQ(batch.stages().front().batch, 16);
  EXPECT_EQ(batch.stages().back().batch, 64);
}

TEST(BatchSize, ProblemsNameTheNumbers) {
  EXPECT_TRUE(batch_problems(64, Rampup{16, 16, 300}, 4).empty());
  EXPECT_EQ(batch_problems(10, {}, 4).at(0),
            "the global batch size 10 is not a multiple of 4, micro-batch size x data-parallel "
            "ranks");
  EXPECT_EQ(batch_problems(64, Rampup{16, 20, 300}, 4).at(0),
            "--rampup-batch-size: from 16 the increment 20 does not reach the global batch size "
            "64");
  EXPECT_EQ(batch_problems(64, Rampup{128, 16, 300}, 4).size(), 1u);
  EXPECT_EQ(batch_problems(64, Rampup{4, 6, 300}, 4).size(), 1u);
  EXPECT_EQ(batch_problems(1000000000, Rampup{2, 2, 300}, 2).at(0),
            "--rampup-batch-size: from 2 to 1000000000 in steps of 2 are more than 1000000 steps");
}

}  // namespace
}  // namespace bloomery
