// `bloomery finetune --dpo`: runs on pairs of answers.
#include <gtest/gtest.h>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

class Dpo : public ::testing::Test, public RunCase {
 protected:
  Dpo() {
    std::string lines;
    for (int i = 0; i < 12; ++i) {
      lines += concat(R"({"prompt": "Tell of Tom )", i, R"(", "chosen": "Tom ran )",
                      std::string(static_cast<std::size_t>(i % 5), 'a'), R"(", "rejected": "Ann )",
                      i, "\"}\n");
    }
    write_file(at("pairs.jsonl"), lines);
    EXPECT_EQ(train("--train-iters 2 --seq-length 256 --save " + at("base")).code, kFinished);
  }
  Outcome tune(const std::string& more, const std::string& load = "base") const {
    return run_command(
        words(concat("finetune --dpo --load ", at(load), " --data-path ", at("pairs.jsonl"),
                     " --prompt-template plain --seq-length 48 --lr 0.002 --log-interval 1 "
                     "--device cpu --num-threads 1 ",
                     more)));
  }
  static std::vector<double> figures(const Outcome& outcome, const std::string& name) {
    std::vector<double> all;
    for (const std::string& number : all_matches(outcome.out, name + ": ([0-9.E+-]+) \\|")) {
      all.push_back(std::stod(number));
    }
    return all;
  }
};

TEST_F(Dpo, LearnsWhatIsPreferred) {
  const Outcome outcome =
      tune("--micro-batch-size 3 --epochs 4 --split 75,25,0 --save " + at("tuned"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  const std::vector<double> loss = figures(outcome, "dpo loss");
  ASSERT_EQ(loss.size(), 12u) << outcome.out;
  EXPECT_EQ(loss.front(), 0.6931472);
  EXPECT_LT(loss.back(), 0.5);
  EXPECT_EQ(figures(outcome, "rewards/margins").front(), 0);
  EXPECT_EQ(figures(outcome, "rewards/accuracies").back(), 1);
  EXPECT_GT(figures(outcome, "rewards/chosen").back(), figures(outcome, "rewards/rejected").back());
  EXPECT_LT(figures(outcome, "logps/rejected").front(), 0);
  EXPECT_TRUE(outcome.says("validation loss at iteration 12")) << outcome.out;
  EXPECT_EQ(outcome.out.find("dpo loss PPL"), std::string::npos);
  EXPECT_EQ(outcome.out.find("lm loss"), std::string::npos);
}

TEST_F(Dpo, ResumesExactly) {
  const std::string run =
      "--micro-batch-size 3 --epochs 2 --split 75,25,0 --save-interval 2 --save ";
  ASSERT_EQ(tune(run + at("whole")).code, kFinished);
  ASSERT_EQ(tune(run + at("parts") + " --exit-interval 4").code, kStoppedEarly);
  const Outcome rest = tune(run + at("parts"), "parts");
  ASSERT_EQ(rest.code, kFinished) << rest.errors;
  EXPECT_TRUE(rest.says("the reference is that of")) << rest.out;
  expect_same_checkpoints("whole", "parts");
  const auto refused = [&](const char* what) {
    const Outcome outcome = tune(run + at("parts"), "parts");
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_TRUE(outcome.says(what)) << outcome.errors;
  };
  std::string other = read_file(at("pairs.jsonl"));
  other.replace(other.find("ran"), 3, "sat");
  write_file(at("pairs.jsonl"), other);
  refused("is of other train pairs");
  std::filesystem::remove(at("parts/dpo_reference.safetensors"));
  refused("which --dpo needs");
}

TEST_F(Dpo, LayoutsTuneAlike) {
  const std::string run = "--train-iters 3 --micro-batch-size 2 --global-batch-size 4 ";
  const Outcome one = tune(run);
  ASSERT_EQ(one.code, kFinished) << one.errors;
  for (const char* layout : {"--ranks-as-threads 4 --tensor-model-parallel-size 2 --zero-stage 1",
                             "--ranks-as-threads 2 --pipeline-model-parallel-size 2",
                             "--ranks-as-threads 2 --zero-stage 3",
                             "--ranks-as-threads 2 --ds-sequence-parallel-size 2"}) {
    const Outcome other = tune(run + layout);
    ASSERT_EQ(other.code, kFinished) << layout << other.errors;
    for (const char* name : {"dpo loss", "rewards/margins", "logps/chosen"}) {
      const std::vector<double> expected = figures(one, name), found = figures(other, name);
      ASSERT_EQ(found.size(), 3u) << layout;
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(found[i], expected[i], 2e-4) << layout << " " << name;
      }
    }
  }
}

TEST_F(Dpo, TunesAnAdapter) {
  const Outcome outcome =
      tune("--micro-batch-size 4 --epochs 4 --lora --lora-rank 4 --lr 0.02 --save " + at("lora"));
  ASSERT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_EQ(figures(outcome, "dpo loss").front(), 0.6931472);
  EXPECT_LT(figures(outcome, "dpo loss").back(), 0.66);
}

TEST_F(Dpo, SaysWhatDoesNotGoTogether) {
  const auto says = [&](const Outcome& outcome, const char* what) {
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_TRUE(outcome.says(what)) << outcome.errors;
  };
  says(tune("--packing"), "leave out --packing");
  says(tune("--loss-on all"), "leave out --loss-on all");
  says(tune("--dpo-loss hinge --dpo-label-smoothing 0.1"), "goes with --dpo-loss sigmoid");
  const std::string far(200, '?');
  write_file(at("pairs.jsonl"),
             concat(R"({"prompt": ")", far, R"(", "chosen": "a", "rejected": "b"})"));
  says(tune(""), "no pair is left");
  write_file(at("pairs.jsonl"), R"({"prompt": "a", "completion": "b"})");
  says(tune(""), "the record has no 'chosen'");
}

}  // namespace
}  // namespace bloomery
