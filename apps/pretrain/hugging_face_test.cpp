// Runs that start from what another run or program made: a Hugging Face folder, a checkpoint's own
// model, one checkpoint of several, counters set back.
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/pretrain/run_case.h"
#include "checkpoint/model_record.h"

namespace bloomery {
namespace {

class FromElsewhere : public ::testing::Test, public RunCase {
 protected:
  std::string loss(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    const std::vector<std::string> all = losses(outcome.out);
    return all.empty() ? "" : all.front();
  }
  // `pretrain` with what is needed besides a model.
  Outcome train_only(const std::string& more) const {
    Arguments arguments = command(more);
    for (const char* flag : {"--num-layers", "--hidden-size", "--num-attention-heads"}) {
      const auto at = std::ranges::find(arguments, flag);
      arguments.erase(at, at + 2);
    }
    return run_command(arguments);
  }
};

// The first loss of a run that goes on from an export is that of one that goes on from the
// checkpoint; dropout is off, so that it depends on weights and samples alone.
TEST_F(FromElsewhere, AHuggingFaceFolderIsLoadedDirectly) {
  const std::string still = " --attention-dropout 0 --hidden-dropout 0 ";
  for (const std::string family :
       {"gpt", "llama", "qwen2 --num-key-value-heads 1", "neox --rotary-percent 0.5",
        "mistral --sliding-window 5",
        "qwen3 --kv-channels 16 --sliding-window 5 --window-attn-skip-freq 2", "gemma"}) {
    const std::string name = family.substr(0, family.find(' '));
    ASSERT_EQ(
        train(concat("--train-iters 6 --model-family ", family, still, " --save ", at(name))).code,
        kFinished);
    const std::string hf = at(name + "-hf");
    expect_command({"convert", "--to", "hf", "--input", at(name), "--output", hf});
    const Outcome direct = train_only(concat("--train-iters 1 --load ", hf, still));
    const Outcome native = train_only(
        concat("--train-iters 1 --finetune --use-checkpoint-args --load ", at(name), still));
    EXPECT_EQ(loss(direct), loss(native)) << name;
    EXPECT_NE(loss(direct), loss(train("--train-iters 1" + still))) << "random weights";
    EXPECT_TRUE(direct.says("weights are those of the Hugging Face model")) << direct.out;
  }
}

TEST_F(FromElsewhere, FlagsThatContradictTheStoredModelAreNamed) {
  ASSERT_EQ(train("--train-iters 2 --save " + at("run")).code, kFinished);
  const Outcome outcome = run_command(command(
      concat("--train-iters 3 --use-checkpoint-args --load ", at("run"), " --hidden-size 64")));
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("hidden-size")) << outcome.errors;
  EXPECT_TRUE(outcome.says("contradict")) << outcome.errors;
}

TEST_F(FromElsewhere, ATagNamesOneCheckpointAndCountersCanBeSetBack) {
  ASSERT_EQ(train("--train-iters 6 --save-interval 2 --save " + at("run")).code, kFinished);
  const std::string load = " --load " + at("run");
  const auto iterations = [](const Outcome& outcome) { return losses(outcome.out).size(); };
  EXPECT_EQ(iterations(train("--train-iters 6 --load-tag global_step2" + load)), 4u);
  EXPECT_EQ(iterations(train("--train-iters 6 --load-tag 4" + load)), 2u);
  EXPECT_EQ(train("--train-iters 6 --load-tag 5" + load).code, kBadInput);
  EXPECT_EQ(iterations(train("--train-iters 6 --reset-iteration" + load)), 6u);
}

}  // namespace
}  // namespace bloomery
