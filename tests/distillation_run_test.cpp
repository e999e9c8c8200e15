// Distillation through the program: teachers of every form of checkpoint, losses that fall, a run
// that goes on bit for bit, and what users may get wrong.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"
#include "run_case.h"

namespace bloomery {
namespace {

class DistillationRun : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  void SetUp() override {
    expect_command(words("data stories --count 200 --output " + at("text.jsonl")));
    expect_command(words(concat("tokenizer train --vocab-size 300 --input ", at("text.jsonl"),
                                " --output ", at("tokenizer"))));
    expect_command(
        words(concat("preprocess --append-eod --input ", at("text.jsonl"), " --tokenizer ",
                     at("tokenizer"), " --output-prefix ", at("text"))));
    train("--num-layers 3 --train-iters 40 --save " + at("teacher"));
  }
  std::string train(const std::string& more, int code = kFinished) const {
    return expect_command(
        words(concat("pretrain_gpt --hidden-size 32 --num-attention-heads 2 --seq-length 64 "
                     "--micro-batch-size 4 --lr 0.01 --lr-decay-style constant --split 90,10,0 "
                     "--eval-iters 1 --log-interval 1 --device cpu --num-threads 1 --data-path ",
                     at("text_text_document"), " --tokenizer ", at("tokenizer"), " ", more)),
        code);
  }
  std::string student(const std::string& more, int code = kFinished) const {
    return train(concat("--num-layers 2 --kd-beta-ce 0.8 --kd-temp 2 ", more), code);
  }
  std::vector<float> weights(const std::string& save) const {
    const CheckpointReader reader = open_checkpoint(list_checkpoints(at(save)).back());
    const std::string name = "blocks.1.attention.qkv.weight";
    std::vector<float> values(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(values)));
    return values;
  }

  TemporaryFolder folder_;
};

TEST_F(DistillationRun, LearnsFromTheTeacherAndGoesOnBitForBit) {
  const std::string kd = concat("--kd --train-iters 30 --load-teacher ", at("teacher"), " ");
  const std::string log = student(kd + "--save " + at("whole"));
  EXPECT_NE(log.find("the teacher is that of " + at("teacher")), log.npos) << log;
  EXPECT_NE(log.find("| total loss: "), log.npos) << log;
  const std::vector<double> losses = numbers(log, "kd loss: ");
  ASSERT_EQ(losses.size(), 30u) << log;
  EXPECT_LT(losses.back(), 0.5 * losses.front()) << log;
  student(kd + "--exit-interval 10 --save " + at("parts"), kStoppedEarly);
  student(kd + "--save " + at("parts") + " --load " + at("parts"));
  EXPECT_EQ(weights("parts"), weights("whole"));
  student("--train-iters 30 --save " + at("alone"));
  EXPECT_NE(weights("alone"), weights("whole"));
}

TEST_F(DistillationRun, StagesEndWithTheLabelsAlone) {
  const std::string log = student("--mos --train-iters 6 --kd-until 4 --save " + at("staged") +
                                  " --load-teacher " + at("teacher"));
  EXPECT_EQ(numbers(log, "mos loss: ").size(), 4u) << log;
  EXPECT_EQ(numbers(log, "total loss: ").size(), 6u) << log;
  EXPECT_EQ(numbers(log, "total loss: ")[5], numbers(log, "lm loss: ")[5]) << log;
}

// The same first step whatever wrote the teacher, and under two tensor ranks.
TEST_F(DistillationRun, TeachersComeInEveryForm) {
  const auto first_losses = [&](const std::string& more) {
    const std::string log = student("--kd --train-iters 2 " + more);
    return std::pair(numbers(log, "kd loss: "), numbers(log, "total loss: "));
  };
  const auto own = first_losses("--load-teacher " + at("teacher"));
  ASSERT_EQ(own.first.size(), 2u);
  for (const char* form : {"hf", "megatron", "deepspeed"}) {
    expect_command(
        words(concat("convert --input ", at("teacher"), " --to ", form, " --output ", at(form))));
    EXPECT_EQ(first_losses("--load-teacher " + at(form)), own) << form;
  }
  const auto divided = first_losses(
      "--ranks-as-threads 2 --tensor-model-parallel-size 2 --load-teacher " + at("hf"));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(divided.first[i], own.first[i], 1e-5 * own.first[i]);
    EXPECT_NEAR(divided.second[i], own.second[i], 1e-5 * own.second[i]);
  }
}

TEST_F(DistillationRun, SaysWhatIsWrong) {
  const auto says = [&](const std::string& more, const std::string& part) {
    const std::string log = student("--train-iters 1 " + more, kBadInput);
    EXPECT_NE(log.find(part), log.npos) << log;
  };
  says("--kd", "--kd needs --load-teacher FOLDER");
  says("--kd --load-teacher " + at("nowhere"), at("nowhere"));
  says("--kd --load-teacher " + at("tokenizer"), "no model in");
  says("--mos --num-layers-teacher 4 --load-teacher " + at("teacher"),
       "--num-layers-teacher 4, where the checkpoint has 3");
  says("--mos --num-experts-teacher 4 --load-teacher " + at("teacher"), "4 experts");
  says("--kd --ranks-as-threads 2 --pipeline-model-parallel-size 2 --load-teacher " + at("teacher"),
       "cannot be cut into pipeline stages");
  const std::string plan = student(
      "--kd --train-iters 1 --dry-run --num-layers-teacher 5 --load-teacher " + at("nowhere"));
  EXPECT_NE(plan.find("teacher ..."), plan.npos) << plan;
  EXPECT_NE(plan.find(at("nowhere") + " does not exist"), plan.npos) << plan;
  const std::string plain = student("--train-iters 1 --dry-run");
  EXPECT_NE(plain.find("--kd-temp has no effect without --kd or --mos"), plain.npos) << plain;
}

}  // namespace
}  // namespace bloomery
