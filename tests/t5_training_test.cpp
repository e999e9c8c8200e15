// `pretrain_t5` on stories: the loss falls, a run that was stopped goes on bit for bit, pipelines
// give one rank's numbers, and the model writes.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"

namespace bloomery {
namespace {

Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class T5Training : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string tokenizer() const {
    return concat(" --tokenizer-type BertWordPieceLowerCase --vocab-extra-ids 40 --vocab-file ",
                  at("vocab.txt"), " ");
  }
  // Letters are pieces, so that every text has its ids.
  void SetUp() override {
    std::ofstream vocabulary(at("vocab.txt"));
    vocabulary << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n!\n?\n'\n\"\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      vocabulary << letter << "\n##" << letter << '\n';
    }
    vocabulary.close();
    expect_command(words("data stories --count 100 --output " + at("text.jsonl")));
    expect_command(words(concat("preprocess --split-sentences --input ", at("text.jsonl"),
                                tokenizer(), "--output-prefix ", at("text"))));
  }
  std::string train(const std::string& more, int code = kFinished) const {
    return expect_command(
        words(concat("pretrain_t5 --encoder-num-layers 2 --decoder-num-layers 2 --hidden-size 32 "
                     "--num-attention-heads 2 --encoder-seq-length 48 --decoder-seq-length 40 "
                     "--micro-batch-size 4 --lr 0.01 --lr-decay-style constant --split 90,10,0 "
                     "--eval-iters 1 --log-interval 1 --device cpu --num-threads 1 --data-path ",
                     at("text_text_sentence"), tokenizer(), more)),
        code);
  }
  CheckpointReader newest(const std::string& save) const {
    return open_checkpoint(list_checkpoints(at(save)).back());
  }
  std::vector<float> weights(const std::string& save, const std::string& name) const {
    const CheckpointReader reader = newest(save);
    std::vector<float> numbers(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }
  void expect_same(const std::string& a, const std::string& b) const {
    for (const char* name :
         {"embedding.tokens.weight", "embedding.positions.weight", "encoder.0.attention.qkv.weight",
          "decoder.1.cross.key_value.weight", "decoder.1.mlp.up.weight", "head.bias"}) {
      EXPECT_EQ(weights(a, name), weights(b, name)) << name;
    }
  }

  TemporaryFolder folder_;
};

std::vector<double> losses(const std::string& log) {
  const std::string word = "lm loss: ";
  std::vector<double> all;
  for (std::size_t at = log.find(word); at != log.npos; at = log.find(word, at + 1)) {
    all.push_back(std::stod(log.substr(at + word.size())));
  }
  return all;
}

double mean(const std::vector<double>& numbers, std::size_t first) {
  double sum = 0;
  for (std::size_t i = first; i < first + 5; ++i) {
    sum += numbers[i] / 5;
  }
  return sum;
}

TEST_F(T5Training, LearnsAndResumesBitForBit) {
  const std::string log = train(concat("--train-iters 30 --save ", at("whole"), " "));
  const std::vector<double> all = losses(log);
  ASSERT_GE(all.size(), 30u) << log;
  EXPECT_LT(mean(all, 25), mean(all, 0) - 0.5) << log;
  train(concat("--train-iters 30 --exit-interval 10 --save ", at("parts"), " "), kStoppedEarly);
  train(concat("--train-iters 30 --save ", at("parts"), " --load ", at("parts"), " "));
  expect_same("whole", "parts");

  const auto written = [&](const char* how) {
    const std::string row = expect_command(words(
        concat("generate --device cpu --num-threads 1 --greedy --out-seq-length 5 --json --prompt "
               "once --load ",
               at("whole"), how)));
    return row.substr(0, row.find("\"logprobs\""));  // whose last bits depend on the kernel
  };
  const std::string text = written("");
  EXPECT_NE(text.find("<extra_id_0>"), text.npos) << text;
  EXPECT_EQ(text, written(" --recompute"));
}

TEST_F(T5Training, APipelineIsCutWhereTheSplitRankSays) {
  const std::string more =
      "--train-iters 3 --global-batch-size 8 --eval-iters 0 --pipeline-model-parallel-size 3 ";
  const std::vector<double> one =
      losses(train("--train-iters 3 --global-batch-size 8 --eval-iters 0 "));
  for (const char* split : {"1", "2"}) {
    const std::vector<double> cut = losses(train(
        concat(more, "--ranks-as-threads 3 --pipeline-model-parallel-split-rank ", split, " ")));
    ASSERT_EQ(cut.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(cut[i], one[i], 1e-5 * one[i]);
    }
  }
  const std::string plan = train(concat(more, "--ranks-as-threads 3 --dry-run "));
  EXPECT_NE(plan.find("activations"), plan.npos) << plan;
}

TEST_F(T5Training, SaysWhatDoesNotFit) {
  const std::string pipeline =
      "--train-iters 3 --global-batch-size 8 --ranks-as-threads 3 "
      "--pipeline-model-parallel-size 3 ";
  for (const auto& [flags, message] :
       {std::pair{pipeline + "--pipeline-model-parallel-split-rank 3", "from 1 to 2"},
        std::pair{pipeline + "--pipeline-model-parallel-split-rank 1 --decoder-num-layers 1",
                  "too few"},
        std::pair{std::string("--train-iters 3 --decoder-seq-length 0"), "--decoder-seq-length"},
        std::pair{std::string("--train-iters 3 --max-position-embeddings 20"),
                  "--max-position-embeddings"},
        std::pair{std::string("--train-iters 3 --use-rotary-position-embeddings"), "rotary"}}) {
    const std::string said = train(flags, kBadInput);
    EXPECT_NE(said.find(message), said.npos) << flags << "\n" << said;
  }
}

}  // namespace
}  // namespace bloomery
