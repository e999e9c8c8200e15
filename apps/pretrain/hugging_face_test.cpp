// Runs that start from what another run or program made: a Hugging Face folder, a checkpoint's own
// model, one checkpoint of several, counters set back, and folders without a model.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/pretrain/run_case.h"
#include "base/file.h"
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

TEST_F(FromElsewhere, KeysOfConfigThatWeDoNotKnowOutliveTraining) {
  ASSERT_EQ(train("--train-iters 1 --model-family llama --save " + at("first")).code, kFinished);
  const auto convert = [&](const std::string& from, const std::string& to) {
    expect_command({"convert", "--to", "hf", "--input", at(from), "--output", at(to)});
    return nlohmann::json::parse(read_file(at(to + "/config.json")));
  };
  nlohmann::json config = convert("first", "hf");
  config["pretraining_tp"] = 1;
  write_file(at("hf/config.json"), config.dump());
  const std::string save = concat(" --save ", at("tuned"), " --load ");
  const Outcome first = train_only("--train-iters 1" + save + at("hf"));
  ASSERT_EQ(first.code, kFinished) << first.errors;
  const Outcome second =
      train_only("--train-iters 2 --extend --use-checkpoint-args" + save + at("tuned"));
  ASSERT_EQ(second.code, kFinished) << second.errors;
  EXPECT_EQ(convert("tuned", "back")["pretraining_tp"], 1);
}

// A llama is also what Megatron's flags make of a GPT: either may go on from the other.
TEST_F(FromElsewhere, ModelsAreComparedByStructure) {
  const std::string still = " --train-iters 1 --attention-dropout 0 --hidden-dropout 0 ";
  const std::string llama = still + "--model-family llama ";
  for (const std::string head :
       {"--untie-embeddings-and-output-weights ", "--no-untie-embeddings-and-output-weights "}) {
    const std::string flags =
        concat(still, head, "--swiglu --normalization rmsnorm --use-rotary-position-embeddings ",
               "--disable-bias-linear --max-position-embeddings 1024 ");
    const std::string name = head.substr(2, 2);
    ASSERT_EQ(train(concat(llama, head, "--save ", at(name))).code, kFinished);
    expect_command({"convert", "--to", "hf", "--input", at(name), "--output", at(name + "-hf")});
    expect_command({"convert", "--to", "native", "--input", at(name + "-hf"), "--output",
                    at(name + "-native")});
    const std::string expected = loss(train_only(concat(still, "--load ", at(name + "-hf"))));
    EXPECT_EQ(loss(train(concat(flags, "--finetune --load ", at(name + "-native")))), expected);
    EXPECT_EQ(loss(train(concat(flags, "--load ", at(name + "-hf")))), expected);

    ASSERT_EQ(train(concat(flags, "--save ", at(name + "-gpt"))).code, kFinished);
    const std::string back = concat(" --finetune --load ", at(name + "-gpt"));
    EXPECT_EQ(loss(train(llama + head + back)), loss(train(flags + back)));
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

TEST_F(FromElsewhere, AFirstStartSpellsItsFolderAsItLikes) {
  std::filesystem::create_directory_symlink(at("."), at("link"));
  for (const std::string load : {"first/", "./first", "x/../first", "link/first"}) {
    const Outcome first =
        train(concat("--train-iters 1 --save ", at("first"), " --load ", at(load)));
    EXPECT_EQ(first.code, kFinished) << load << first.errors;
    std::filesystem::remove_all(at("first"));
  }
}

TEST_F(FromElsewhere, NeverStartsFromRandomValuesWhereAModelWasNamed) {
  ASSERT_EQ(train("--train-iters 1 --save " + at("model")).code, kFinished);
  std::filesystem::create_directories(at("empty"));
  std::filesystem::create_directories(at("parent"));
  std::filesystem::rename(at("model"), at("parent/model"));
  const std::pair<std::string, const char*> wrong[] = {
      {at("parent/modle"), "did you mean"},
      {at("parent"), "parent/model does"},
      {at("empty"), "holds no model"},
      {at("parent/model/metrics.jsonl"), "is a file"},
      {"meta-llama/Llama-2-7b-hf", "hf download NAME --local-dir FOLDER"}};
  for (const auto& [load, next] : wrong) {
    for (const std::string& save : {std::string(), " --save " + at("new")}) {
      const Outcome outcome = train(concat("--train-iters 1", save, " --load ", load));
      EXPECT_EQ(outcome.code, kBadInput) << load;
      EXPECT_TRUE(outcome.says("--load: ")) << outcome.errors;
      EXPECT_TRUE(outcome.says(next)) << outcome.errors;
      EXPECT_FALSE(std::filesystem::exists(at("new"))) << load;
    }
    const Outcome tuned =
        run_command(words("finetune --device cpu --data-path none --load " + load));
    EXPECT_EQ(tuned.code, kBadInput) << load;
    EXPECT_TRUE(tuned.says(next)) << tuned.errors;
  }
  const Outcome tuned = run_command(words(concat("finetune --device cpu --data-path none --load ",
                                                 at("empty"), " --save ", at("empty"))));
  EXPECT_EQ(tuned.code, kBadInput);
  EXPECT_TRUE(tuned.says("holds no model")) << tuned.errors;
  const Outcome dry = train("--train-iters 1 --dry-run --load " + at("empty"));
  EXPECT_EQ(dry.code, kFinished);
  EXPECT_TRUE(dry.says("holds no model")) << dry.out;
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
