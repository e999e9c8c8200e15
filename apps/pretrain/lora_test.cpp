// `bloomery finetune --lora`: adapters that are trained, kept, resumed and passed to PEFT.
#include <gtest/gtest.h>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

class Lora : public ::testing::Test, public RunCase {
 protected:
  Lora() {
    std::string lines;
    for (int i = 0; i < 12; ++i) {
      lines +=
          concat(R"({"instruction": "Tell of Tom )", i, R"(", "output": "Tom ran )", i, "\"}\n");
    }
    write_file(at("data.jsonl"), lines);
    write_file(at("prompt.jinja"),
               "Q: {{ instruction }}\nA:{% generation %} {{ output }}{% endgeneration %}");
    train_base("base", "--num-key-value-heads 1");
  }
  void train_base(const std::string& name, const std::string& more) const {
    EXPECT_EQ(train(concat("--train-iters 2 --seq-length 256 --model-family llama --save ",
                           at(name), " ", more))
                  .code,
              kFinished);
  }
  Outcome tune(const std::string& more, const std::string& load = "base") const {
    return run_command(words(concat(
        "finetune --load ", at(load), " --data-path ", at("data.jsonl"), " --prompt-template ",
        at("prompt.jinja"),
        " --seq-length 64 --lr 0.01 --attention-dropout 0 --hidden-dropout 0 --log-interval 1 "
        "--device cpu --num-threads 1 --micro-batch-size 4 ",
        more)));
  }
};

TEST_F(Lora, ResumesExactly) {
  const std::string run =
      "--lora --lora-rank 4 --lora-dropout 0.1 --neftune-noise-alpha 5 --lora-target-modules "
      "q_proj "
      "mlp.up attention.projection --train-iters 6 --save-interval 3 --save ";
  const Outcome whole = tune(run + at("whole"));
  ASSERT_EQ(whole.code, kFinished) << whole.errors;
  EXPECT_LT(std::stod(losses(whole.out).back()), std::stod(losses(whole.out).front()));
  ASSERT_EQ(tune(run + at("parts") + " --exit-interval 3").code, kStoppedEarly);
  const Outcome rest = tune(run + at("parts"), "parts");
  ASSERT_EQ(rest.code, kFinished) << rest.errors;
  expect_same_checkpoints("whole", "parts");
}

// What is stored are the numbers that the codes stand for: they have the same codes again, and a
// run without codes computes the same with them.
TEST_F(Lora, WeightsOfFewerBitsResumeExactly) {
  const std::string run = "--lora --bf16 --train-iters 4 --save-interval 2 --save ";
  for (const std::string format : {"nf4", "int8"}) {
    const std::string flag = " --quantize-base " + format, stop = " --exit-interval 2";
    const Outcome whole = tune(run + at("whole-" + format) + flag);
    ASSERT_EQ(whole.code, kFinished) << whole.errors;
    ASSERT_EQ(tune(run + at("parts-" + format) + flag + stop).code, kStoppedEarly);
    ASSERT_EQ(tune(run + at("parts-" + format) + flag, "parts-" + format).code, kFinished);
    expect_same_checkpoints("whole-" + format, "parts-" + format);
    ASSERT_EQ(tune(run + at("wide-" + format) + flag + stop).code, kStoppedEarly);
    ASSERT_EQ(tune(run + at("wide-" + format), "wide-" + format).code, kFinished);
    expect_same_checkpoints("whole-" + format, "wide-" + format);
  }
}

TEST_F(Lora, WeightsOfFewerBitsAreTheSameUnderAnyLayout) {
  const std::string run = "--lora --quantize-base int8 --train-iters 2 --save ";
  train_base("heads", "");
  const Outcome one = tune(run + at("one"), "heads");
  ASSERT_EQ(one.code, kFinished) << one.errors;
  const std::string layouts[] = {"--ranks-as-threads 2 --tensor-model-parallel-size 2",
                                 "--ranks-as-threads 2 --zero-stage 2 --micro-batch-size 2",
                                 "--ranks-as-threads 2 --pipeline-model-parallel-size 2"};
  for (const std::string& layout : layouts) {
    const Outcome two = tune(run + at("two") + " " + layout, "heads");
    ASSERT_EQ(two.code, kFinished) << two.errors;
    // The mean of two micro-batches is not that of one: their answers are of different lengths.
    const double apart = layout.find("zero") == layout.npos ? 1e-5 : 2e-3;
    EXPECT_NEAR(std::stod(losses(two.out)[1]), std::stod(losses(one.out)[1]), apart) << layout;
    const CheckpointReader a = newest("one"), b = newest("two");
    for (const char* name : {"blocks.1.mlp.down.weight", "blocks.0.attention.qkv.weight"}) {
      std::vector<std::byte> numbers[2];
      for (const auto& [reader, to] : {std::pair(&a, &numbers[0]), std::pair(&b, &numbers[1])}) {
        to->resize(reader->tensor(name).bytes());
        reader->read(name, Box::whole(reader->tensor(name).shape), *to);
      }
      EXPECT_EQ(numbers[0], numbers[1]) << layout << " " << name;
    }
    std::filesystem::remove_all(at("two"));
  }
}

// An adapter that has learnt nothing beside weights in a format: merged, the numbers that the codes
// stand for, of which `generate --quantize` makes the codes.
TEST_F(Lora, GenerationInFewerBitsIsThatOfWhatTheCodesStandFor) {
  const auto generated = [&](const std::string& flags) {
    const Outcome outcome = run_command(
        words("generate --prompt Tom --out-seq-length 32 --greedy --device cpu " + flags));
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    return outcome.out;
  };
  for (const std::string format : {"int8", "nf4"}) {
    ASSERT_EQ(tune(concat("--lora --quantize-base ", format, " --train-iters 1 --lr 0 --min-lr 0 ",
                          "--weight-decay 0 --save ", at(format)))
                  .code,
              kFinished);
    expect_command({"convert", "--to", "hf", "--input", at(format), "--output", at("hf" + format)});
    EXPECT_EQ(generated(concat("--load ", at("base"), " --quantize ", format)),
              generated("--load " + at("hf" + format)));
  }
}

TEST_F(Lora, IsMergedWrittenAndReadAgain) {
  const Outcome tuned = tune("--lora --lora-alpha 16 --train-iters 5 --save " + at("lora"));
  ASSERT_EQ(tuned.code, kFinished) << tuned.errors;
  expect_command({"convert", "--to", "peft", "--input", at("lora"), "--output", at("adapter")});
  expect_command({"convert", "--to", "hf", "--input", at("base"), "--output", at("base-hf")});
  expect_command({"convert", "--to", "hf", "--input", at("lora"), "--output", at("merged")});
  const auto generated = [&](const std::string& flags) {
    const Outcome outcome = run_command(
        words("generate --prompt Tom --out-seq-length 24 --greedy --device cpu " + flags));
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    return outcome.out;
  };
  const std::string own = generated("--load " + at("lora"));
  EXPECT_EQ(generated("--load " + at("merged")), own);
  EXPECT_EQ(generated("--load " + at("lora") + " --merge-adapter"), own);
  EXPECT_EQ(generated("--load " + at("base-hf") + " --adapter " + at("adapter")), own);
  EXPECT_NE(generated("--load " + at("base-hf")), own);
  // From PEFT's files on, and from the checkpoint's own: the same first loss.
  const Outcome again = tune("--train-iters 1 --adapter " + at("adapter"), "base-hf"),
                further = tune("--train-iters 1", "lora");
  ASSERT_EQ(again.code, kFinished) << again.errors;
  ASSERT_EQ(further.code, kFinished) << further.errors;
  EXPECT_NEAR(std::stod(losses(again.out)[0]), std::stod(losses(further.out)[0]), 1e-6);
}

TEST_F(Lora, SaysWhatIsWrong) {
  const auto says = [&](const Outcome& outcome, const char* what) {
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_TRUE(outcome.says(what)) << outcome.errors;
  };
  says(tune("--lora --train-iters 1 --lora-target-modules c_attn"), "is called c_attn");
  says(tune("--adapter " + at("absent")), "adapter_config.json");
  says(tune("--lora --fp8-format hybrid --bf16 --train-iters 1"), "layers with adapters");
  says(tune("--quantize-base nf4 --train-iters 1"), "add --lora");
  says(tune("--lora --quantize-base nf4 --zero-stage 3 --train-iters 1"), "choose a lower stage");
  train_base("heads", "");
  says(tune("--lora --load-in-4bit --train-iters 1 --ranks-as-threads 2 "
            "--tensor-model-parallel-size 2",
            "heads"),
       "no whole blocks of 64");
  says(run_command({"convert", "--to", "peft", "--input", at("base"), "--output", at("none")}),
       "has no adapter");
}

}  // namespace
}  // namespace bloomery
