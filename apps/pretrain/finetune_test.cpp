// `bloomery finetune`: runs on instruction data.
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

class Finetune : public ::testing::Test, public RunCase {
 protected:
  Finetune() {
    std::string lines;
    for (int i = 0; i < 12; ++i) {
      lines += concat(R"({"instruction": "Tell of Tom )", i, R"(", "output": "Tom )",
                      std::string(static_cast<std::size_t>(i % 5), 'a'), " ", i, "\"}\n");
    }
    write_file(at("data.jsonl"), lines);
    write_file(at("prompt.jinja"),
               "Q: {{ instruction }}\nA:{% generation %} {{ output }}{% endgeneration %}");
    EXPECT_EQ(train("--train-iters 2 --seq-length 256 --save " + at("base")).code, kFinished);
  }
  // Tunes the base, or goes on where `more` names another --load.
  Outcome tune(const std::string& more, const std::string& load = "base") const {
    return run_command(
        words(concat("finetune --load ", at(load), " --data-path ", at("data.jsonl"),
                     " --prompt-template ", at("prompt.jinja"),
                     " --seq-length 64 --lr 0.004 --attention-dropout 0 --hidden-dropout 0 "
                     "--log-interval 1 --device cpu --num-threads 1 ",
                     more)));
  }
};

TEST_F(Finetune, GoesThroughTheRecordsSoManyTimes) {
  const Outcome whole = tune("--micro-batch-size 5 --epochs 2 --save " + at("tuned"));
  ASSERT_EQ(whole.code, kFinished) << whole.errors;
  EXPECT_EQ(losses(whole.out).size(), 5u) << "24 records in batches of 5";
  EXPECT_LT(std::stod(losses(whole.out).back()), std::stod(losses(whole.out).front()));
  EXPECT_EQ(newest("tuned").state().step, 5);
  const Outcome validated = tune("--micro-batch-size 3 --epochs 1 --split 75,25,0");
  EXPECT_EQ(losses(validated.out).size(), 3u) << validated.errors;
  EXPECT_TRUE(validated.says("validation loss at iteration 3")) << validated.out;
}

TEST_F(Finetune, ResumesExactly) {
  const std::string run =
      "--micro-batch-size 4 --epochs 3 --split 80,20,0 --save-interval 4 --save ";
  ASSERT_EQ(tune(run + at("whole")).code, kFinished);
  ASSERT_EQ(tune(run + at("parts") + " --exit-interval 4").code, kStoppedEarly);
  const Outcome rest = tune(run + at("parts"), "parts");
  ASSERT_EQ(rest.code, kFinished) << rest.errors;
  EXPECT_TRUE(rest.says("at iteration 4")) << rest.out;
  expect_same_checkpoints("whole", "parts");
}

// The same records in one batch, each in a sequence of its own or several side by side: as many
// tokens to learn, so the same mean loss.
TEST_F(Finetune, PackedRecordsDoNotSeeEachOther) {
  write_file(at("data.jsonl"), R"({"instruction": "a", "output": "Tom sat"}
{"instruction": "b", "output": "Tom ran to it"})");
  const Outcome apart = tune("--train-iters 3 --micro-batch-size 2");
  const Outcome packed = tune("--train-iters 3 --micro-batch-size 1 --packing");
  ASSERT_EQ(apart.code, kFinished) << apart.errors;
  ASSERT_EQ(packed.code, kFinished) << packed.errors;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(std::stod(losses(packed.out)[i]), std::stod(losses(apart.out)[i]), 1e-5);
  }
}

TEST_F(Finetune, LayoutsTuneAlike) {
  const std::string run = "--train-iters 3 --micro-batch-size 2 --global-batch-size 4 --packing ";
  const Outcome one = tune(run),
                two = tune(run + "--ranks-as-threads 2 --tensor-model-parallel-size 2"),
                zero = tune(run + "--ranks-as-threads 2 --zero-stage 2");
  ASSERT_EQ(one.code, kFinished) << one.errors;
  for (const Outcome* other : {&two, &zero}) {
    ASSERT_EQ(other->code, kFinished) << other->errors;
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(std::stod(losses(other->out)[i]), std::stod(losses(one.out)[i]), 1e-4);
  }
}

TEST_F(Finetune, TakesTheFlagsOfFinetuneLlama) {
  Arguments flags =
      command("--train-iters 2 --seq-length 256 --split 100,0,0 --repeated-dataloader --load " +
              at("base") + " --data-path " + at("data.jsonl"));
  flags[0] = "finetune_llama";
  const Outcome outcome = run_command(flags);
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  EXPECT_EQ(losses(outcome.out).size(), 2u) << outcome.out;
}

// What a model was tuned by goes with it: to its checkpoints, and to other programs.
TEST_F(Finetune, TheChatTemplateIsKept) {
  const auto tuned = [&](const std::string& name, const std::string& more) {
    const Outcome outcome = run_command(
        words(concat("finetune --load ", at("base"), " --data-path ", at("data.jsonl"),
                     " --seq-length 128 --lr 0.004 --epochs 1 --micro-batch-size 3 --split 100,0,0 "
                     "--device cpu --num-threads 1 --save ",
                     at(name), more)));
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    const Outcome exported = run_command(
        words(concat("convert --input ", at(name), " --output ", at(name + "-hf"), " --to hf")));
    EXPECT_EQ(exported.code, 0) << exported.errors;
    EXPECT_EQ(losses(outcome.out).size(), 4u) << "a short run shows every step";
  };
  const std::string own = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
  write_file(at("chat.jinja"), own);
  tuned("own", " --chat-template " + at("chat.jinja"));
  EXPECT_EQ(newest("own").read_file("chat_template.jinja"), own);
  EXPECT_EQ(read_file(at("own-hf/chat_template.jinja")), own);

  tuned("tuned", "");
  EXPECT_NE(read_file(at("tuned-hf/chat_template.jinja")).find("### Assistant:"),
            std::string::npos);
  write_file(at("tuned-hf/chat_template.jinja"), own);
  const Outcome next = run_command(words(
      concat("finetune --load ", at("tuned-hf"), " --data-path ", at("data.jsonl"),
             " --seq-length 128 --epochs 1 --device cpu --num-threads 1 --save ", at("next"))));
  EXPECT_EQ(next.code, kFinished) << next.errors;
  EXPECT_EQ(newest("next").read_file("chat_template.jinja"), own) << "the model has one now";
}

TEST_F(Finetune, SaysWhatIsMissing) {
  const auto says = [&](const Outcome& outcome, const char* what) {
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_TRUE(outcome.says(what)) << outcome.errors;
  };
  const std::string data = " --data-path " + at("data.jsonl");
  says(run_command(words("finetune --device cpu" + data)), "finetune needs --load");
  write_file(at("pairs.jsonl"), R"({"prompt": "a", "chosen": "b", "rejected": "c"})");
  says(run_command(words("finetune --device cpu --load " + at("base") + " --data-path " +
                         at("pairs.jsonl") + " --prompt-template plain")),
       "the record is a preference pair");
  says(tune("--response-template absent"), "no record has a token in the loss");
  says(tune("--chat-template " + at("prompt.jinja")), "exclude each other");
  says(run_command(words("finetune --device cpu --load " + at("base") +
                         " --prompt-template alpaca --data-path " + at("absent"))),
       "--data-path");
}

}  // namespace
}  // namespace bloomery
