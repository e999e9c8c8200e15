// `bloomery finetune --task RET-FINETUNE-NQ`: a retriever learns to find the passages that answer
// questions.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

using Json = nlohmann::json;

class QuestionRun : public ::testing::Test, public RunCase {
 protected:
  // The words of a question are "who" and two letters, which stand in its passage too; those of
  // hard negatives have one of them.
  QuestionRun() {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwho\nis\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      vocabulary += concat(letter, "\n");
    }
    write_file(at("vocab.txt"), vocabulary);
    write_file(at("train.json"), questions(96).dump());
    write_file(at("dev.json"), questions(22).dump());
  }
  char letter() { return static_cast<char>('a' + random_() % 26); }
  Json passage(char first, char second) {
    return {{"title", std::string(1, letter())},
            {"text", concat("is ", std::string(1, first), " ", std::string(1, second))}};
  }
  Json questions(int count) {
    Json all = Json::array();
    for (int i = 0; i < count; ++i) {
      const char a = letter(), b = letter();
      Json hard = Json::array(), other = Json::array();
      for (int k = 0; k < 2 + i % 2; ++k) {
        hard.push_back(passage(a, letter()));
        other.push_back(passage(letter(), letter()));
      }
      all.push_back(
          {{"question", concat("who is ", std::string(1, a), " ", std::string(1, b), "?")},
           {"answers", {std::string(1, b)}},
           {"positive_ctxs", {passage(a, b)}},
           {"negative_ctxs", other},
           {"hard_negative_ctxs", hard}});
    }
    return all;
  }

  std::string tokenizer() const {
    return concat(" --tokenizer-type BertWordPieceLowerCase --vocab-file ", at("vocab.txt"), " ");
  }
  static std::string shape() {
    return " --num-layers 1 --hidden-size 32 --num-attention-heads 2 --max-position-embeddings 16 "
           "--biencoder-projection-dim 24 ";
  }
  std::string flags() const {
    return concat(" --task RET-FINETUNE-NQ --train-data ", at("train.json"), " --valid-data ",
                  at("dev.json"), tokenizer(),
                  "--retriever-seq-length 12 --retriever-score-scaling --train-with-neg "
                  "--train-hard-neg 1 --retriever-report-topk-accuracies 1 5 --lr 0.003 "
                  "--lr-decay-style constant --micro-batch-size 8 --log-interval 1 --eval-iters 0 "
                  "--device cpu --num-threads 1 --init-method-std 0.1 --seed 1234 ");
  }
  Outcome tune(const std::string& more, const std::string& model = shape()) const {
    return run_command(words(concat("finetune ", flags(), model, more)));
  }
  std::string text(const std::string& name) const { return read_file(at(name)); }

 private:
  std::mt19937 random_{11};
};

std::string rank_line(const std::string& log, int epoch) {
  const std::string begin = concat("epoch:", epoch, "|rank = ");
  const std::size_t at = log.find(begin);
  return at == log.npos ? "" : log.substr(at, log.find('\n', at) - at);
}

double rank_of(const std::string& log, int epoch) {
  const std::string line = rank_line(log, epoch);
  const std::size_t at = line.find("= ");
  return at == line.npos ? -1 : std::stod(line.substr(at + 2));
}

TEST_F(QuestionRun, LearnsToFindPassages) {
  const Outcome good =
      tune("--epochs 12 --hidden-dropout 0 --attention-dropout 0 --save " + at("run"));
  ASSERT_EQ(good.code, kFinished) << good.errors;
  const std::vector<std::string> all = losses(good.out);
  ASSERT_EQ(all.size(), 12u * 12) << good.out;
  const auto mean_of_epoch = [&](std::size_t epoch) {
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      sum += std::stod(all[epoch * 12 + i]) / 12;
    }
    return sum;
  };
  EXPECT_LT(mean_of_epoch(11), mean_of_epoch(0) * 0.7) << good.out;
  EXPECT_TRUE(good.says("correct_prediction_count: ")) << good.out;
  EXPECT_TRUE(good.says("calculating metrics by accuracy func in ORQA...")) << good.out;
  EXPECT_NE(rank_line(good.out, 11).find("|top1_acc = "), std::string::npos) << good.out;
  EXPECT_NE(rank_line(good.out, 11).find("|top5_acc = "), std::string::npos) << good.out;
  EXPECT_LT(rank_of(good.out, 11), rank_of(good.out, 0) / 2) << good.out;
  const Json epochs = Json::parse(text("run/epochs.json"));
  ASSERT_EQ(epochs["epochs"].size(), 12u);
  const auto& best = epochs["epochs"][epochs["best"].get<std::size_t>()];
  for (const Json& each : epochs["epochs"]) {
    EXPECT_LE(best["sets"]["dev"]["rank"], each["sets"]["dev"]["rank"]);
  }
  EXPECT_EQ(best["sets"]["dev"]["total"], 22);
}

TEST_F(QuestionRun, ResumesExactly) {
  const std::string run = "--epochs 2 --keep-last-batch --micro-batch-size 10 --save ";
  ASSERT_EQ(tune(run + at("whole")).code, kFinished);
  ASSERT_EQ(tune(run + at("parts") + " --exit-interval 13").code, kStoppedEarly);
  const Outcome rest = tune(concat(run, at("parts"), " --load ", at("parts")));
  ASSERT_EQ(rest.code, kFinished) << rest.errors;
  expect_same_checkpoints("whole", "parts");
  EXPECT_EQ(text("whole/epochs.json"), text("parts/epochs.json"));
}

// Negatives are those of the whole batch, whoever holds them, and ranks those of a micro-batch.
TEST_F(QuestionRun, RanksLearnAlike) {
  const std::string run = "--epochs 1 --eval-micro-batch-size 4 --keep-last-batch ";
  const Outcome one = tune(run + "--micro-batch-size 10");
  ASSERT_EQ(one.code, kFinished) << one.errors;
  ASSERT_EQ(losses(one.out).size(), 10u);
  for (const char* layout : {"", "--zero-stage 3", "--zero-stage 1 --recompute-method uniform"}) {
    const Outcome two = tune(concat(run, "--micro-batch-size 5 --ranks-as-threads 2 ", layout));
    ASSERT_EQ(two.code, kFinished) << two.errors;
    ASSERT_EQ(losses(two.out).size(), losses(one.out).size());
    for (std::size_t i = 0; i < losses(one.out).size(); ++i) {
      EXPECT_NEAR(std::stod(losses(two.out)[i]), std::stod(losses(one.out)[i]), 2e-4) << layout;
    }
    EXPECT_EQ(rank_line(two.out, 0), rank_line(one.out, 0)) << layout;
  }
}

TEST_F(QuestionRun, StartsFromABertOrARetriever) {
  write_file(at("MRPC.tsv"), "Quality\t1\t2\ta\tb\n1\t2\t3\ta b\tc\n0\t2\t3\td e\tf\n");
  const Outcome bert = run_command(words(
      concat("finetune --task MRPC --num-layers 1 --hidden-size 32 --num-attention-heads 2 "
             "--max-position-embeddings 16 --train-data ",
             at("MRPC.tsv"), " --valid-data ", at("MRPC.tsv"), tokenizer(),
             "--seq-length 16 --micro-batch-size 2 --epochs 1 --lr 0.001 --eval-iters 0 --device "
             "cpu --save ",
             at("bert"))));
  ASSERT_EQ(bert.code, kFinished) << bert.errors;
  const std::string still = "--epochs 1 --lr 0 --save ";
  const auto weights = [&](const std::string& run, const std::string& name) {
    const CheckpointReader reader = newest(run);
    std::vector<float> numbers(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(numbers)));
    return numbers;
  };
  for (const char* flag : {"--bert-load ", "--pretrained-checkpoint "}) {
    std::filesystem::remove_all(at("tuned"));
    const Outcome run =
        tune(concat(still, at("tuned"), " ", flag, at("bert")), "--biencoder-projection-dim 24 ");
    ASSERT_EQ(run.code, kFinished) << run.errors;
    for (const char* name : {"embedding.tokens.weight", "blocks.0.mlp.up.weight"}) {
      EXPECT_EQ(weights("tuned", concat("query.", name)), weights("bert", name)) << flag;
      EXPECT_EQ(weights("tuned", concat("context.", name)), weights("bert", name)) << flag;
    }
  }
  // A retriever goes on whole, and beside it --bert-load has nothing to say.
  const Outcome again = tune(concat(still, at("again"), " --pretrained-checkpoint ", at("tuned"),
                                    " --bert-load ", at("bert"), " --load ", at("again")),
                             "");
  ASSERT_EQ(again.code, kFinished) << again.errors;
  for (const char* name : {"query.projection.weight", "context.projection.bias",
                           "context.blocks.0.attention.qkv.weight"}) {
    EXPECT_EQ(weights("again", name), weights("tuned", name));
  }
  // Evaluation alone tells the rank of every question, and gives what the tuned model gave.
  const Outcome told =
      tune(concat("--epochs 0 --pretrained-checkpoint ", at("tuned"), " --save ", at("told")), "");
  ASSERT_EQ(told.code, kFinished) << told.errors;
  EXPECT_EQ(rank_of(told.out, -1), rank_of(again.out, 0)) << told.out;
  const std::string ranks = text("told/predictions_dev.tsv");
  EXPECT_EQ(std::ranges::count(ranks, '\n'), 23) << ranks;
}

TEST_F(QuestionRun, IsIndexedSearchedAndEvaluated) {
  ASSERT_EQ(tune("--epochs 10 --hidden-dropout 0 --attention-dropout 0 --save " + at("run")).code,
            kFinished);
  std::ofstream passages(at("passages.tsv")), asked(at("questions.tsv"));
  passages << "id\ttext\ttitle\n";
  int number = 0;
  for (const Json& record : Json::parse(text("train.json"))) {
    const Json& found = record["positive_ctxs"][0];
    passages << ++number << '\t' << found["text"].get<std::string>() << '\t'
             << found["title"].get<std::string>() << '\n';
    const std::string question = record["question"];
    asked << question.substr(0, question.size() - 1) << "\t['" << found["text"].get<std::string>()
          << "']\n";
  }
  passages.close();
  asked.close();
  const std::string load =
      concat(" --device cpu --num-threads 1 --retriever-seq-length 12 --load ", at("run"), " ");
  expect_command(words(concat("retrieve index --evidence-data-path ", at("passages.tsv"),
                              " --index ", at("index"), load)));
  const auto found = Json::parse(expect_command(
      words(concat("retrieve search --json --query who --topk 5 --index ", at("index"), load))));
  EXPECT_EQ(found["passages"].size(), 5u);
  const auto result = Json::parse(expect_command(
      words(concat("evaluate --json --task RETRIEVER-EVAL --retriever-report-topk-accuracies 20 "
                   "--qa-data-test ",
                   at("questions.tsv"), " --embedding-path ", at("index"), load))));
  EXPECT_GT(result["test"]["accuracy"]["top-20"], 60.0) << result;  // by chance about 20
}

TEST_F(QuestionRun, TakesTheFlagsOfTasksMain) {
  const Outcome run = run_command(words(concat(
      "tasks/main.py --task RET-FINETUNE-NQ --train-with-neg --train-hard-neg 1 --num-layers 1 "
      "--hidden-size 32 --num-attention-heads 2 --tensor-model-parallel-size 1 --train-data ",
      at("train.json"), " --valid-data ", at("dev.json"), tokenizer(), " --save ", at("main"),
      " --load ", at("main"),
      " --save-interval 5000 --log-interval 10 --eval-interval 25000 --eval-iters 1 "
      "--indexer-log-interval 1000 --faiss-use-gpu --DDP-impl torch "
      "--retriever-report-topk-accuracies 1 5 10 20 100 --seq-length 16 --retriever-seq-length 12 "
      "--max-position-embeddings 16 --retriever-score-scaling --epochs 1 --micro-batch-size 8 "
      "--eval-micro-batch-size 16 --indexer-batch-size 128 --lr 2e-5 --lr-warmup-fraction 0.01 "
      "--weight-decay 1e-1 --sample-rate 0.5 --device cpu")));
  ASSERT_EQ(run.code, kFinished) << run.errors;
  EXPECT_NE(rank_line(run.out, 0).find("|top100_acc = "), std::string::npos) << run.out;
  EXPECT_TRUE(run.says("taken time to calcuate metrics ")) << run.out;
}

TEST_F(QuestionRun, SaysWhatIsWrong) {
  const auto says = [&](const Outcome& outcome, const char* what) {
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_TRUE(outcome.says(what)) << outcome.out << outcome.errors;
  };
  says(tune("--epochs 1 --model-family bert"), "ict");
  says(tune("--epochs 1 --pretrained-checkpoint " + at("absent")), "does not exist");
  says(tune("--epochs 1 --retriever-seq-length 3"), "--retriever-seq-length");
  says(tune("--epochs 1 --retriever-seq-length 32"), "--retriever-seq-length 32");
  says(tune("--epochs 1 --sample-rate 0"), "--sample-rate");
  says(tune("--epochs 1 --keep-last --global-batch-size 16"), "--keep-last");
  says(tune("--epochs 1 --pipeline-model-parallel-size 2 --ranks-as-threads 2"), "stages");
  says(tune("--epochs 1 --micro-batch-size 1000"), "--keep-last");
  write_file(at("train.json"), "[{\"question\": ");
  says(tune("--epochs 1 --save " + at("none")), "train.json: is not valid JSON behind record 0");
  EXPECT_FALSE(std::filesystem::exists(at("none")));
  std::filesystem::remove(at("dev.json"));
  says(tune("--epochs 0"), "dev.json");
}

}  // namespace
}  // namespace bloomery
