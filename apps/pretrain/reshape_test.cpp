// Checkpoints saved under one layout and loaded under another: the run goes on as if one rank had
// done all.
#include <gtest/gtest.h>

#include <fstream>

#include "apps/bloomery.h"
#include "apps/pretrain/run_case.h"
#include "base/file.h"
#include "base/thread_pool.h"

namespace bloomery {
namespace {

constexpr const char* kLayouts[] = {
    "1",
    "8 --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 "
    "--zero-stage 1",
    "4 --zero-stage 1",
    "8 --zero-stage 3",
    "4 --tensor-model-parallel-size 2 --zero-stage 2",
    "4 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --zero-stage 3",
    "4 --ds-sequence-parallel-size 2 --zero-stage 2",
    "8 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --enable-zbh1-pipeline"};
constexpr int kNumLayouts = std::size(kLayouts);

constexpr const char* kOptions =
    "--num-layers 4 --num-attention-heads 4 --micro-batch-size 1 --global-batch-size 8 "
    "--train-iters 9 --eval-iters 0 ";

class Reshape : public RunCase, public testing::Test {
 public:
  Outcome train_under(int layout, const std::string& more) const {
    return train(concat(kOptions, more, " --ranks-as-threads ", kLayouts[layout]));
  }
  void expect_good(const std::string& name) const {
    ThreadPool pool;
    EXPECT_EQ(newest(name).problems(pool), std::vector<std::string>()) << name;
  }
  // Of the steps from `first` on.
  void expect_losses_of_one_rank(const Outcome& outcome, std::size_t first, std::size_t count) {
    static const std::vector<std::string> one = losses(train_under(0, "").out);
    const std::vector<std::string> mine = losses(outcome.out);
    ASSERT_EQ(mine.size(), count) << outcome.out << outcome.errors;
    for (std::size_t i = 0; i < count; ++i) {
      const double wanted = std::stod(one.at(first + i));
      EXPECT_NEAR(std::stod(mine[i]), wanted, 1e-5 * wanted) << "step " << first + i + 1;
    }
  }
};

TEST_F(Reshape, WhatOneLayoutSavedAnotherGoesOnFrom) {
  for (int from = 0; from < kNumLayouts; ++from) {
    const std::string name = concat("from-", from);
    const Outcome saved = train_under(from, "--exit-interval 3 --save " + at(name));
    ASSERT_EQ(saved.code, kStoppedEarly) << saved.errors;
    expect_losses_of_one_rank(saved, 0, 3);
    expect_good(name);
    for (int to = 0; to < kNumLayouts; ++to) {
      SCOPED_TRACE(concat("from ", kLayouts[from], " to ", kLayouts[to]));
      const Outcome loaded = train_under(to, "--exit-interval 6 --load " + at(name));
      EXPECT_EQ(loaded.code, kStoppedEarly) << loaded.errors;
      expect_losses_of_one_rank(loaded, 3, 3);
    }
  }
}

TEST_F(Reshape, EightRanksThenOneThenEight) {
  for (int part = 0; part < 3; ++part) {
    const Outcome outcome = train_under(
        part == 1 ? 0 : part + 1, concat("--exit-interval ", 3 * (part + 1), saved_in("parts")));
    ASSERT_EQ(outcome.code, part < 2 ? kStoppedEarly : kFinished) << outcome.errors;
    expect_losses_of_one_rank(outcome, static_cast<std::size_t>(3 * part), 3);
    expect_good("parts");
  }
}

// Each rank checks what it reads; of a part that is damaged one rank alone may know.
TEST_F(Reshape, WhatOneRankCannotReadNoRankStartsFrom) {
  const Outcome saved =
      train_under(3, "--save-interval 3 --exit-interval 6 --save " + at("damaged"));
  ASSERT_EQ(saved.code, kStoppedEarly) << saved.errors;
  const std::string file = at("damaged") + "/step-6/rank-5.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file) << bytes;
  // Without overlap a rank that went on alone would wait for the others at once.
  for (const int layout : {0, 1, 3}) {
    const Outcome outcome =
        train_loudly(concat(kOptions, "--load ", at("damaged"),
                            " --no-overlap-param-gather --ranks-as-threads ", kLayouts[layout]));
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    EXPECT_TRUE(outcome.says("Skipping unreadable checkpoint: ")) << outcome.errors;
    EXPECT_TRUE(outcome.says("rank-5.safetensors: damaged")) << outcome.errors;
    EXPECT_TRUE(outcome.says("using the last good checkpoint")) << outcome.errors;
    expect_losses_of_one_rank(outcome, 3, 6);
  }
}

}  // namespace
}  // namespace bloomery
