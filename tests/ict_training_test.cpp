// `pretrain_ict` on stories: it starts from a BERT, the loss falls, a run that was stopped goes on
// bit for bit; then its texts are indexed and found, and the tasks count the answers.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
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

constexpr const char* kSizes =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 48 "
    "--max-position-embeddings 48 --lr-decay-style constant --split 90,10,0 --eval-iters 1 "
    "--log-interval 1 --device cpu --num-threads 1 --init-method-std 0.1 --lr 0.003 ";

class IctTraining : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string tokenizer() const {
    return concat(" --tokenizer-type BertWordPieceLowerCase --vocab-file ", at("vocab.txt"), " ");
  }
  // Letters are pieces, so that every text has its ids. Titles are the beginnings of texts.
  void SetUp() override {
    std::ofstream vocabulary(at("vocab.txt"));
    vocabulary << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n!\n?\n'\n\"\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      vocabulary << letter << "\n##" << letter << '\n';
    }
    vocabulary.close();
    expect_command(words("data stories --count 100 --output " + at("stories.jsonl")));
    std::ifstream stories(at("stories.jsonl"));
    std::ofstream titled(at("text.jsonl"));
    for (std::string line; std::getline(stories, line);) {
      nlohmann::json story = nlohmann::json::parse(line);
      story["title"] = story["text"].get<std::string>().substr(0, 8);
      titled << story.dump() << '\n';
    }
    titled.close();
    expect_command(words(concat("preprocess --split-sentences --json-keys text title --input ",
                                at("text.jsonl"), tokenizer(), "--output-prefix ", at("text"))));
  }
  std::string train(const std::string& more, int code = kFinished) const {
    return expect_command(
        words(concat("pretrain_ict ", kSizes, "--micro-batch-size 8 --biencoder-projection-dim 16 ",
                     "--retriever-report-topk-accuracies 1 4 --retriever-score-scaling ",
                     "--data-path ", at("text_text_sentence"), " --titles-data-path ",
                     at("text_title_sentence"), tokenizer(), more)),
        code);
  }
  std::vector<float> weights(const std::string& save, const std::string& name) const {
    const CheckpointReader reader = open_checkpoint(list_checkpoints(at(save)).back());
    std::vector<float> numbers(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  TemporaryFolder folder_;
};

std::vector<double> numbers_behind(const std::string& log, const std::string& word) {
  std::vector<double> all;
  for (std::size_t at = log.find(word); at != log.npos; at = log.find(word, at + 1)) {
    all.push_back(std::stod(log.substr(at + word.size())));
  }
  return all;
}

double mean(const std::vector<double>& numbers, std::size_t first, std::size_t count) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    sum += numbers[i] / static_cast<double>(count);
  }
  return sum;
}

TEST_F(IctTraining, LearnsAndResumesBitForBit) {
  const std::string towers = "--biencoder-shared-query-context-model --query-in-block-prob 1 ";
  const std::string log = train(concat(towers, "--train-iters 80 --save ", at("whole"), " "));
  const std::vector<double> losses = numbers_behind(log, "| loss: ");
  ASSERT_EQ(losses.size(), 80u) << log;
  EXPECT_LT(mean(losses, 70, 10), mean(losses, 0, 10) - 0.1) << log;
  EXPECT_EQ(numbers_behind(log, "| top4_acc: ").size(), 80u);
  EXPECT_NE(log.find("top1_acc value: "), log.npos) << log;
  train(concat(towers, "--train-iters 80 --exit-interval 30 --save ", at("parts"), " "),
        kStoppedEarly);
  train(concat(towers, "--train-iters 80 --save ", at("parts"), " --load ", at("parts"), " "));
  for (const char* name : {"shared.embedding.tokens.weight", "shared.blocks.1.mlp.up.weight",
                           "shared.projection.weight", "shared.final_norm.bias"}) {
    EXPECT_EQ(weights("whole", name), weights("parts", name)) << name;
  }
}

TEST_F(IctTraining, StartsFromABert) {
  expect_command(
      words(concat("pretrain_bert ", kSizes, "--micro-batch-size 4 --train-iters 2 ",
                   "--data-path ", at("text_text_sentence"), tokenizer(), "--save ", at("bert"))));
  train(concat("--bert-load ", at("bert"), " --train-iters 1 --lr 0 --save ", at("ict"), " --load ",
               at("ict"), " "));
  for (const char* name : {"embedding.tokens.weight", "embedding.token_types.weight",
                           "blocks.1.attention.qkv.weight", "final_norm.gain"}) {
    EXPECT_EQ(weights("ict", concat("query.", name)), weights("bert", name)) << name;
    EXPECT_EQ(weights("ict", concat("context.", name)), weights("bert", name)) << name;
  }
  EXPECT_EQ(weights("ict", "query.projection.weight"), weights("ict", "context.projection.weight"));
  const std::string other =
      train(concat("--bert-load ", at("bert"), " --train-iters 1 --num-layers 1"), kBadInput);
  EXPECT_NE(other.find("num-layers: 1 here, 2 in the checkpoint"), other.npos) << other;
  const std::string ict = train(concat("--bert-load ", at("ict"), " --train-iters 1"), kBadInput);
  EXPECT_NE(ict.find("starts from one of the family bert"), ict.npos) << ict;
}

TEST_F(IctTraining, SaysWhatDoesNotFit) {
  for (const auto& [flags, message] :
       {std::pair{"--pipeline-model-parallel-size 2 --ranks-as-threads 2", "pipeline"},
        std::pair{"--ds-sequence-parallel-size 2 --ranks-as-threads 2", "sequence"},
        std::pair{"--retriever-report-topk-accuracies 1 2 3 4 5 6 7 8", "at most 7"},
        std::pair{"--query-in-block-prob 2", "--query-in-block-prob"}}) {
    const std::string said = train(concat("--train-iters 1 ", flags), kBadInput);
    EXPECT_NE(said.find(message), said.npos) << flags << "\n" << said;
  }
}

TEST_F(IctTraining, IsSearchedAndEvaluated) {
  train(concat("--train-iters 1 --save ", at("ict"), " "));
  std::ofstream(at("passages.tsv")) << "id\ttext\ttitle\n"
                                       "4\t\"the \"\"red\"\" fox sat.\"\tfox\n"
                                       "9\ta dog ran home.\tdog\n"
                                       "12\tmilk is good for a cat.\tcat\n";
  std::ofstream(at("questions.tsv")) << "who ran\t['the dog', \"a dog\"]\n"
                                        "who flew\t['a bird']\n";
  const std::string load = concat(" --device cpu --num-threads 1 --load ", at("ict"), " ");
  const std::string index = concat("retrieve index --evidence-data-path ", at("passages.tsv"),
                                   " --index ", at("index"), load);
  EXPECT_NE(expect_command(words(index)).find("3 passages, embeddings of size 16"),
            std::string::npos);
  expect_command(words(index), kBadInput);  // it is there
  expect_command(words(index + "--overwrite"));

  const auto found = nlohmann::json::parse(expect_command(
      words(concat("retrieve search --json --query fox --topk 5 --index ", at("index"), load))));
  ASSERT_EQ(found["passages"].size(), 3u);
  for (const auto& passage : found["passages"]) {
    EXPECT_EQ(passage["text"].get<std::string>().find("the \"red\" fox") == 0, passage["id"] == 4);
  }
  EXPECT_GE(found["passages"][0]["score"], found["passages"][1]["score"]);

  const auto result = nlohmann::json::parse(expect_command(
      words(concat("evaluate --json --task RETRIEVER-EVAL --retriever-report-topk-accuracies 3 "
                   "--qa-data-test ",
                   at("questions.tsv"), " --embedding-path ", at("index"), load))));
  EXPECT_EQ(result["test"]["hits"][2], 1) << result;
  EXPECT_EQ(result["test"]["accuracy"]["top-3"], 50.0) << result;
  const std::string lines = expect_command(words(
      concat("evaluate --task ICT-ZEROSHOT-NQ --retriever-report-topk-accuracies 3 --qa-data-dev ",
             at("questions.tsv"), " --evidence-data-path ", at("passages.tsv"),
             " --embedding-path ", at("made"), load)));
  EXPECT_NE(lines.find("DEV SET RESULTS\ntopk-100 documents hits ["), lines.npos) << lines;
  EXPECT_NE(lines.find("top-3: 50.00\n"), lines.npos) << lines;

  const std::string blocks = expect_command(
      words(concat("retrieve index --data-path ", at("text_text_sentence"), " --titles-data-path ",
                   at("text_title_sentence"), " --index ", at("blocks"), load)));
  EXPECT_NE(blocks.find(" passages"), blocks.npos) << blocks;
}

TEST_F(IctTraining, SaysWhatASearchLacks) {
  train(concat("--train-iters 1 --save ", at("ict"), " "));
  std::ofstream(at("two.tsv")) << "id\ttext\ttitle\n1\tonly text\n";
  std::ofstream(at("twice.tsv")) << "id\ttext\ttitle\n1\ta\tb\n1\tc\td\n";
  std::ofstream(at("none.tsv")) << "id\ttext\ttitle\n";
  const std::string load = concat(" --device cpu --num-threads 1 --load ", at("ict"), " ");
  for (const auto& [command, message] :
       {std::pair{concat("retrieve index --index ", at("x")), "--evidence-data-path"},
        std::pair{concat("retrieve index --evidence-data-path ", at("none.tsv")), "--index"},
        std::pair{
            concat("retrieve index --index ", at("x"), " --evidence-data-path ", at("two.tsv")),
            "row 2 has 2 fields"},
        std::pair{
            concat("retrieve index --index ", at("x"), " --evidence-data-path ", at("twice.tsv")),
            "two passages have the id 1"},
        std::pair{
            concat("retrieve index --index ", at("x"), " --evidence-data-path ", at("none.tsv")),
            "no passages"},
        std::pair{concat("retrieve search --query a --index ", at("none.tsv")), "none.tsv"},
        std::pair{concat("retrieve search --index ", at("none.tsv")), "--query"},
        std::pair{std::string("evaluate --task RETRIEVER-EVAL"), "--qa-data-dev"},
        std::pair{std::string("generate --prompt a"), "does not generate text"}}) {
    const std::string said = expect_command(words(command + load), kBadInput);
    EXPECT_NE(said.find(message), said.npos) << command << "\n" << said;
  }
  EXPECT_FALSE(std::filesystem::exists(at("x")));
}

}  // namespace
}  // namespace bloomery
