// A family that the program does not know, in this file alone: a block and an option of its own. It
// trains, saves, resumes, evaluates and generates like the others.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"
#include "checkpoint/model_record.h"
#include "config/option_table.h"
#include "models/family.h"
#include "nn/embedding.h"
#include "nn/head.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

struct ToyOptions {
  double strength = 0.5;
};

// x + strength * mlp(norm(x)): tokens never see each other.
class ToyBlock final : public Block {
 public:
  ToyBlock(int layer, const ModelOptions& options, const Mesh& mesh)
      : norm_(concat("blocks.", layer, ".norm"), options.hidden_size, options.norm, mesh),
        mlp_(concat("blocks.", layer, ".mlp"), options, mesh),
        strength_(static_cast<float>(options.own<ToyOptions>().strength)) {}

  State forward(Context& context, State state) const override {
    const Value x = norm_(context, state);
    state.pending = scale(context, mlp_(context, x), strength_);
    return state;
  }
  void collect(ParameterList& parameters) const override {
    norm_.collect(parameters);
    mlp_.collect(parameters);
  }

 private:
  Norm norm_;
  Mlp mlp_;
  float strength_;
};

void describe(OptionTable& table, ModelOptions& options) {
  table.section("toys");
  table.add("toy-strength", options.own<ToyOptions>().strength, "Of every block.", above(0));
}

std::vector<std::string> toy_problems(const ModelOptions& options, const MeshDegrees&) {
  return options.own<ToyOptions>().strength < 10
             ? std::vector<std::string>()
             : std::vector<std::string>{"--toy-strength 10 and more breaks toys"};
}

int num_blocks(const ModelOptions& options) { return static_cast<int>(options.num_layers) + 2; }

Blocks blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange) {
  Blocks all;
  auto embedding = std::make_unique<Embedding>(options, mesh, dtype);
  const VocabEmbedding& tables = embedding->tables();
  auto head = std::make_unique<Head>(options, mesh, tables.table(), tables.first_token());
  all.push_back(std::move(embedding));
  for (int layer = 0; layer < options.num_layers; ++layer) {
    all.push_back(std::make_unique<ToyBlock>(layer, options, mesh));
  }
  all.push_back(std::move(head));
  return all;
}

constexpr Family kToy = {.name = "toy",
                         .summary = "a toy",
                         .describe = describe,
                         .problems = toy_problems,
                         .num_blocks = num_blocks,
                         .blocks = blocks};

Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class ToyFamily : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { add_family(kToy); }

  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string train(const std::string& more, int code = kFinished) {
    return expect_command(
        words(concat("pretrain --model-family toy --num-layers 2 --hidden-size 32 "
                     "--num-attention-heads 2 --seq-length 32 --micro-batch-size 4 --lr 0.01 "
                     "--lr-decay-style constant --split 90,10,0 --eval-iters 1 --log-interval 1 "
                     "--device cpu --num-threads 1 --save-interval 100 --data-path ",
                     at("text_text_document"), " --tokenizer ", at("tokenizer"), " ", more)),
        code);
  }
  void SetUp() override {
    expect_command(words("data stories --count 300 --output " + at("text.jsonl")));
    expect_command(words(concat("tokenizer train --vocab-size 300 --input ", at("text.jsonl"),
                                " --output ", at("tokenizer"))));
    expect_command(
        words(concat("preprocess --append-eod --input ", at("text.jsonl"), " --tokenizer ",
                     at("tokenizer"), " --output-prefix ", at("text"))));
  }
  std::vector<float> weights(const std::string& save) const {
    const CheckpointReader reader = open_checkpoint(list_checkpoints(at(save)).back());
    const std::string name = "blocks.1.mlp.down.weight";
    std::vector<float> numbers(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  TemporaryFolder folder_;
};

TEST_F(ToyFamily, TrainsSavesResumesEvaluatesAndGenerates) {
  const std::string length = " --train-iters 12 ";
  train(concat("--toy-strength 0.75 --save ", at("whole"), length));
  train(concat("--toy-strength 0.75 --exit-interval 5 --save ", at("parts"), length),
        kStoppedEarly);
  train(concat("--toy-strength 0.75 --save ", at("parts"), " --load ", at("parts"), length));
  EXPECT_EQ(weights("parts"), weights("whole"));

  const CheckpointReader reader = open_checkpoint(list_checkpoints(at("whole")).back());
  const ModelRecord record = model_record(reader.state(), "here");
  EXPECT_EQ(record.model.own<ToyOptions>().strength, 0.75);

  const std::string differs =
      train(concat("--toy-strength 0.5 --load ", at("whole"), length), kBadInput);
  EXPECT_NE(differs.find("toy-strength: 0.5 here, 0.75 in the checkpoint"), std::string::npos)
      << differs;
  EXPECT_NE(train("--toy-strength 11 --train-iters 1", kBadInput).find("breaks toys"),
            std::string::npos);
  EXPECT_NE(expect_command(words("pretrain --model-family toy --help")).find("--toy-strength"),
            std::string::npos);

  const std::string task =
      expect_command(words(concat("evaluate --device cpu --load ", at("whole"),
                                  " --task PERPLEXITY --valid-data ", at("text_text_document"))));
  EXPECT_NE(task.find("ppl: "), std::string::npos) << task;
  const std::string text =
      expect_command(words(concat("generate --device cpu --load ", at("whole"),
                                  " --prompt The --greedy ", "--out-seq-length 8")));
  EXPECT_NE(text.find("The"), std::string::npos) << text;
  EXPECT_NE(
      expect_command(words(concat("convert --to hf --input ", at("whole"), " --output ", at("hf"))),
                     kBadInput)
          .find("Hugging Face"),
      std::string::npos);
}

}  // namespace
}  // namespace bloomery
