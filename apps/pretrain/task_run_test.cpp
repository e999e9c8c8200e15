// `bloomery finetune --task`: a BERT learns to tell classes, numbers and right answers.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "apps/pretrain/run_case.h"
#include "base/file.h"

namespace bloomery {
namespace {

constexpr const char* kWords[] = {"yes", "no",  "maybe", "tom", "sat", "ran",
                                  "ate", "far", "near",  "big", "red", "why"};

class TaskRun : public ::testing::Test, public RunCase {
 protected:
  TaskRun() {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (const char* word : kWords) {
      vocabulary += concat(word, "\n");
    }
    write_file(at("vocab.txt"), vocabulary);
    std::filesystem::create_directories(at("MNLI"));
    write_file(at("MNLI/train.tsv"), inference(192));
    write_file(at("MNLI/dev_matched.tsv"), inference(21));
    write_file(at("MNLI/dev_mismatched.tsv"), inference(10));
    for (const char* folder : {"RACE/train", "RACE/dev/high"}) {
      std::filesystem::create_directories(at(folder));
      write_file(at(concat(folder, "/1.txt")),
                 passages(folder == std::string("RACE/train") ? 24 : 5));
    }
  }

  std::string words_of_text(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += concat(i == 0 ? "" : " ", kWords[3 + random_() % 9]);
    }
    return text;
  }
  // One of the first three words says which class it is.
  std::string inference(int rows) {
    constexpr const char* kLabels[] = {"contradiction", "entailment", "neutral"};
    std::string text = "index\t1\t2\t3\t4\t5\t6\t7\ts1\ts2\tlabel1\tgold_label\n";
    for (int i = 0; i < rows; ++i) {
      const auto label = random_() % 3;
      text += concat(i, "\t1\t2\t3\t4\t5\t6\t7\t", words_of_text(3), "\t", kWords[label], " ",
                     words_of_text(2), "\tx\t", kLabels[label], "\n");
    }
    return text;
  }
  // The right answer says yes.
  std::string passages(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      nlohmann::json options = nlohmann::json::array(), answers = nlohmann::json::array();
      for (int question = 0; question < 2; ++question) {
        const auto right = random_() % 4;
        nlohmann::json choices;
        for (unsigned c = 0; c < 4; ++c) {
          choices.push_back(words_of_text(1) + (c == right ? " yes" : " no"));
        }
        options.push_back(choices);
        answers.push_back(std::string(1, static_cast<char>('A' + right)));
      }
      lines += nlohmann::json{{"article", words_of_text(4)},
                              {"questions", {"why _", "why"}},
                              {"options", options},
                              {"answers", answers}}
                   .dump() +
               "\n";
    }
    return lines;
  }

  std::string tokenizer() const {
    return concat(" --tokenizer-type BertWordPieceLowerCase --vocab-file ", at("vocab.txt"), " ");
  }
  static std::string shape() {
    return " --num-layers 2 --hidden-size 32 --num-attention-heads 2 --max-position-embeddings 16 ";
  }
  std::string data(const std::string& task) const {
    return task == "RACE"
               ? concat(" --task RACE --train-data ", at("RACE/train"), " --valid-data ",
                        at("RACE/dev/high"))
               : concat(" --task MNLI --train-data ", at("MNLI/train.tsv"), " --valid-data ",
                        at("MNLI/dev_matched.tsv"), " ", at("MNLI/dev_mismatched.tsv"));
  }
  Outcome tune(const std::string& task, const std::string& more,
               const std::string& model = shape()) const {
    return run_command(
        words(concat("finetune ", data(task), tokenizer(), model,
                     "--seq-length 16 --lr 0.002 --lr-decay-style constant --micro-batch-size 8 "
                     "--log-interval 1 --eval-iters 1 --eval-interval 8 --device cpu --num-threads "
                     "1 --seed 1234 ",
                     more)));
  }
  std::string text(const std::string& name) const { return read_file(at(name)); }

 private:
  std::mt19937 random_{7};
};

// Right and all of the last line of this kind.
std::pair<int, int> correct(const std::string& log, const std::string& line) {
  const std::size_t at = log.rfind(line);
  int right = -1, all = -1;
  if (at != log.npos) {
    const std::string words = "correct / total = ";
    const std::size_t numbers = log.find(words, at) + words.size();
    EXPECT_EQ(std::sscanf(log.c_str() + numbers, "%d / %d", &right, &all), 2);
  }
  return {right, all};
}

TEST_F(TaskRun, LearnsClassesAndKeepsTheBestEpoch) {
  const Outcome run =
      tune("MNLI", "--epochs 4 --hidden-dropout 0 --attention-dropout 0 --keep-last 2 --save " +
                       at("mnli"));
  ASSERT_EQ(run.code, kFinished) << run.errors;
  EXPECT_EQ(losses(run.out).size(), 4u * 24) << run.out;
  EXPECT_TRUE(run.says("working on epoch 4 ...")) << run.out;
  EXPECT_TRUE(run.says(" > |epoch: 3| metrics for dev-matched: correct / total = ")) << run.out;
  EXPECT_GE(correct(run.out, " >> |epoch: 3| overall: ").first, 29) << run.out;
  EXPECT_EQ(correct(run.out, " >> |epoch: 3| overall: ").second, 31) << run.out;
  const auto epochs = nlohmann::json::parse(text("mnli/epochs.json"));
  ASSERT_EQ(epochs["epochs"].size(), 4u);
  const int best = epochs["best"];
  const int iteration = epochs["epochs"][static_cast<std::size_t>(best)]["iteration"];
  EXPECT_EQ(std::filesystem::read_symlink(at("mnli/best")), concat("step-", iteration));
  EXPECT_TRUE(std::filesystem::exists(at("mnli/best/manifest.json"))) << "older ones are deleted";
  EXPECT_FALSE(best != 0 && std::filesystem::exists(at("mnli/step-24")));
}

// No file may be as large as a checkpoint's.
TEST_F(TaskRun, EndsWhenItCannotSave) {
  const auto before_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 150'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Outcome run = tune("MNLI", "--epochs 4 --stop-after-failed-saves 1 --save " + at("full"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, before_signal);
  EXPECT_EQ(run.code, kFailed);
  EXPECT_TRUE(run.says("--stop-after-failed-saves 1 ends the run")) << run.errors;
  EXPECT_FALSE(run.says("working on epoch 3")) << run.out;
  EXPECT_TRUE(run.says("the best epoch so far is 0, whose save failed")) << run.out;
}

TEST_F(TaskRun, LearnsWhichChoiceIsRight) {
  const Outcome run = tune("RACE", "--epochs 3");
  ASSERT_EQ(run.code, kFinished) << run.errors;
  EXPECT_EQ(correct(run.out, " > |epoch: 2| metrics for dev-high: ").first, 10) << run.out;
}

TEST_F(TaskRun, ResumesExactly) {
  for (const char* task : {"MNLI", "RACE"}) {
    const std::string whole = concat("whole", task), parts = concat("parts", task);
    const std::string run = "--epochs 2 --global-batch-size 16 --keep-last-batch --save ";
    ASSERT_EQ(tune(task, run + at(whole)).code, kFinished);
    ASSERT_EQ(tune(task, run + at(parts) + " --exit-interval 5").code, kStoppedEarly);
    const Outcome rest = tune(task, concat(run, at(parts), " --load ", at(parts)));
    ASSERT_EQ(rest.code, kFinished) << rest.errors;
    expect_same_checkpoints(whole, parts);
    EXPECT_EQ(text(whole + "/epochs.json"), text(parts + "/epochs.json"));
  }
}

TEST_F(TaskRun, LayoutsLearnAlike) {
  for (const char* task : {"MNLI", "RACE"}) {
    const std::string run = "--epochs 1 --micro-batch-size 4 --global-batch-size 8 ";
    const Outcome one = tune(task, run);
    ASSERT_EQ(one.code, kFinished) << one.errors;
    for (const char* layout : {"--tensor-model-parallel-size 2 --sequence-parallel",
                               "--pipeline-model-parallel-size 2", "--zero-stage 3"}) {
      const Outcome two = tune(task, concat(run, "--ranks-as-threads 2 ", layout));
      ASSERT_EQ(two.code, kFinished) << two.errors;
      ASSERT_EQ(losses(two.out).size(), losses(one.out).size());
      for (std::size_t i = 0; i < losses(one.out).size(); ++i) {
        EXPECT_NEAR(std::stod(losses(two.out)[i]), std::stod(losses(one.out)[i]), 2e-4) << layout;
      }
      EXPECT_EQ(correct(two.out, " >> |epoch: 0|"), correct(one.out, " >> |epoch: 0|")) << layout;
    }
  }
}

TEST_F(TaskRun, GoesToHuggingFaceAndBack) {
  for (const char* task : {"MNLI", "RACE"}) {
    const Outcome run =
        tune(task,
             "--epochs 1 --apply-residual-connection-post-layernorm --no-bias-gelu-fusion "
             "--save " +
                 at(concat("run", task)));
    ASSERT_EQ(run.code, kFinished) << run.errors;
    expect_command(words(concat("convert --input ", at(concat("run", task)), " --to hf --output ",
                                at(concat("hf", task)))));
    auto config = nlohmann::json::parse(text(concat("hf", task, "/config.json")));
    if (task == std::string("RACE")) {
      EXPECT_EQ(config["architectures"][0], "BertForMultipleChoice");
      EXPECT_FALSE(config.contains("id2label"));
    } else {
      EXPECT_EQ(config["architectures"][0], "BertForSequenceClassification");
      EXPECT_EQ(config["id2label"],
                nlohmann::json({{"0", "contradiction"}, {"1", "entailment"}, {"2", "neutral"}}));
      EXPECT_EQ(config["label2id"]["neutral"], 2);
    }
    const Outcome again = tune(task,
                               concat("--epochs 0 --pretrained-checkpoint ", at(concat("hf", task)),
                                      " --save ", at("told")),
                               "");
    ASSERT_EQ(again.code, kFinished) << again.errors;
    EXPECT_FALSE(again.says("initializing to random")) << again.errors;
    EXPECT_EQ(correct(again.out, " >> |epoch: -1|"), correct(run.out, " >> |epoch: 0|"));
  }
  EXPECT_EQ(text("told/predictions_dev-high.tsv").find("index\tprediction\n0\t"), 0u);
}

// The head of another task is drawn anew on the weights of the first.
TEST_F(TaskRun, StartsFromAnyBert) {
  const Outcome first = tune("MNLI", "--epochs 1 --save " + at("first"));
  ASSERT_EQ(first.code, kFinished) << first.errors;
  testing::internal::CaptureStderr();
  Outcome second = tune("RACE", "--epochs 1 --pretrained-checkpoint " + at("first"), "");
  second.errors += testing::internal::GetCapturedStderr();
  ASSERT_EQ(second.code, kFinished) << second.errors;
  EXPECT_TRUE(second.says("could not find multichoice_head in the checkpoint")) << second.errors;
  EXPECT_FALSE(second.says("could not find pooler")) << second.errors;
}

TEST_F(TaskRun, TakesTheFlagsOfTasksMain) {
  const std::string flags = concat(
      data("MNLI"), tokenizer(), shape(),
      "--epochs 1 --seq-length 16 --micro-batch-size 8 --lr 5.0e-5 --lr-decay-style linear "
      "--lr-warmup-fraction 0.065 --weight-decay 1.0e-1 --keep-last --eval-iters 1 --eval-interval "
      "100 "
      "--save-interval 500000 --log-interval 10 --checkpoint-activations --device cpu --save ",
      at("main"), " --load ", at("main"));
  Arguments arguments = words("tasks/main.py" + flags);
  const Outcome run = run_command(arguments);
  EXPECT_EQ(run.code, kFinished) << run.errors;
  EXPECT_EQ(correct(run.out, " >> |epoch: 0| overall: ").second, 31) << run.out;
  const Outcome evaluated = run_command(words("tasks_main --task LAMBADA --load " + at("main")));
  EXPECT_EQ(evaluated.code, kBadInput);
  EXPECT_TRUE(evaluated.says("--valid-data is missing")) << evaluated.errors;
}

TEST_F(TaskRun, SaysWhatIsWrong) {
  const auto says = [&](const Outcome& outcome, const char* what) {
    EXPECT_EQ(outcome.code, kBadInput);
    EXPECT_TRUE(outcome.says(what)) << outcome.out << outcome.errors;
  };
  says(run_command(words("finetune --task MNL")), "MNLI");
  says(run_command(words("tasks_main --num-layers 2")), "--task is required");
  says(run_command(words("finetune --task MNLI --epochs 0" + tokenizer() + shape())),
       "--valid-data is missing");
  says(tune("MNLI", "--epochs 1.5"), "whole epochs");
  says(tune("MNLI", "--epochs 1 --pretrained-checkpoint " + at("absent")), "does not exist");
  says(tune("MNLI", concat("--epochs 1 --pretrained-checkpoint ", std::getenv("BLOOMERY_ROOT"),
                           "/tests/golden/hf/safetensors")),
       "holds a model of the family gpt: --task MNLI tunes a bert");
  says(tune("MNLI", "--epochs 1 --micro-batch-size 1000"), "--keep-last");
  says(tune("MNLI", "--epochs 1 --lora"), "would not be trained");
  write_file(at("MNLI/train.tsv"), "a\tb\n");
  says(tune("MNLI", "--epochs 1"), "MNLI/train.tsv, line 1");
  std::filesystem::remove(at("MNLI/train.tsv"));
  says(tune("MNLI", "--epochs 1"), "MNLI/train.tsv");
}

}  // namespace
}  // namespace bloomery
