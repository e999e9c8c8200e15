// Texts of tasks as Megatron's code lays them out; tests/long/tasks.py compares whole files with
// that code.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "samples/tasks/task_data.h"
#include "samples/tasks/task_metrics.h"
#include "samples/tasks/task_text.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

using Ids = std::vector<std::int32_t>;

class Tasks : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string message(const std::function<void()>& body) const {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::shared_ptr<const Tokenizer> tokenizer() const {
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (const char* word : {"a", "man", "eats", ".", "he", "who", "?", "dog", "it"}) {
      words += std::string(word) + "\n";
    }
    return load_tokenizer(
        {.type = "BertWordPieceLowerCase", .vocab_file = write("vocab.txt", words)});
  }
  TemporaryFolder folder_;
};

TEST_F(Tasks, TextIsCleanedAsMegatronDoes) {
  EXPECT_EQ(clean_text("A man  eats .\nHe sits . Then . . sleeps"),
            "A man eats. He sits. Then.. sleeps");
  EXPECT_EQ(clean_text("a . . . . b"), "a. ... b");
  EXPECT_EQ(clean_text("a\u00a0\u3000b\t"), "a b ");
  EXPECT_EQ(python_lines("a\nb\r\nc\rd"), (std::vector<std::string_view>{"a", "b", "c", "d"}));
}

TEST_F(Tasks, SequencesAreLaidOutAsMegatronDoes) {
  const TaskTokens special{.cls = 101, .sep = 102, .pad = 0};
  const auto second =
      std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{2002, 20323, 1012});
  const TaskTexts pair{{1037, 2158, 20323, 1012}, second}, one{{1037, 2158, 20323, 1012}, nullptr};
  const auto expect = [&](const TaskTexts& texts, const Ids& tokens, const Ids& types, int used) {
    Ids got(tokens.size()), got_types(tokens.size());
    EXPECT_EQ(lay_out(texts, special, got, got_types), used);
    EXPECT_EQ(got, tokens);
    EXPECT_EQ(got_types, types);
  };
  expect(pair, {101, 1037, 2158, 20323, 1012, 102, 2002, 20323, 1012, 102, 0, 0},
         {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0}, 10);
  expect(pair, {101, 1037, 2158, 20323, 1012, 102, 2002, 102}, {0, 0, 0, 0, 0, 0, 1, 1}, 8);
  expect(pair, {101, 1037, 102}, {0, 0, 1}, 3);
  expect(one, {101, 1037, 2158, 20323, 1012, 102, 0, 0}, Ids(8, 0), 6);
  expect(one, {101, 1037, 2158, 20323, 102}, Ids(5, 0), 5);
}

TEST_F(Tasks, FilesOfGlueHaveTheirColumns) {
  struct Case {
    const char *task, *text;
    std::vector<std::int32_t> labels;
    std::vector<std::int64_t> uids;
    bool labelled = true;
  };
  const std::string mnli = "0\t1\t2\t3\t4\t5\t6\t7\t";
  for (const Case& each : {
           Case{"MNLI",
                "i\t1\t2\t3\t4\t5\t6\t7\ta\tb\tl\tgold\n7\t1\t2\t3\t4\t5\t6\t7\tx\ty\tn\tneutral\n",
                {2},
                {7}},
           Case{"MNLI",
                "i\t1\t2\t3\t4\t5\t6\t7\ta\tb\n7\t1\t2\t3\t4\t5\t6\t7\tx\ty\n",
                {0},
                {7},
                false},
           Case{"QQP", "id\tq\tr\ta\tb\tl\n3\t1\t2\tx\ty\t1\nbad\n4\t1\t2\tx\t\t1\n", {1}, {3}},
           Case{"QQP", "id\ta\tb\n3\tx\ty\n", {0}, {3}, false},
           Case{"QNLI", "i\ta\tb\tl\n5\tx\ty\tnot_entailment\r\n", {1}, {5}},
           Case{"RTE", "i\ta\tb\n5\tx\ty\n", {0}, {5}, false},
           Case{"SST-2", "sentence\tlabel\nx \t1\ny\t0\n", {1, 0}, {0, 1}},
           Case{"SST-2", "index\tsentence\n4\ty\n", {0}, {4}, false},
           Case{"CoLA", "gj04\t1\t\tx.\nbc81\t0\t*\ty.\n", {1, 0}, {0, 1}},
           Case{"CoLA", "index\tsentence\n9\ty\n", {0}, {9}, false},
           Case{"MRPC", "Quality\t1\t2\ta\tb\n1\t2\t3\tx\ty\n", {1}, {0}},
           Case{"MRPC", "index\t1\t2\ta\tb\n8\t2\t3\tx\ty\n", {0}, {8}, false},
       }) {
    const GlueFile file = read_glue(find_task(each.task), write("file.tsv", each.text));
    ASSERT_EQ(file.rows.size(), each.labels.size()) << each.text;
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
      EXPECT_EQ(file.rows[i].label, each.labels[i]) << each.text;
      EXPECT_EQ(file.rows[i].uid, each.uids[i]) << each.text;
    }
    EXPECT_EQ(file.labelled, each.labelled) << each.text;
    EXPECT_EQ(file.notes.size(), each.task == std::string("QQP") && each.labelled ? 1U : 0U);
  }
  const GlueFile scores =
      read_glue(find_task("STS-B"),
                write("s.tsv", "i\t1\t2\t3\t4\t5\t6\ta\tb\ts\n0\t1\t2\t3\t4\t5\t6\tx\ty\t4.25\n"));
  EXPECT_EQ(scores.rows.at(0).score, 4.25f);
}

TEST_F(Tasks, WhatIsWrongIsNamedWithItsLine) {
  const auto glue = [&](const char* task, const std::string& text) {
    const std::string path = write("bad.tsv", text);
    return message([&] { read_glue(find_task(task), path); });
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  expect(glue("QNLI", "i\ta\tb\tl\n5\tx\ty\tmaybe\n"),
         "bad.tsv, line 2: 'maybe' is no label of QNLI");
  expect(glue("QQP", "i\ta\tb\tl\n"), "is it the file of another task?");
  expect(glue("QNLI", "i\ta\tb\tl\nsix\tx\ty\tentailment\n"), "line 2: the number 'six'");
  expect(glue("MNLI", "i\t1\t2\t3\t4\t5\t6\t7\ta\tb\tl\tg\n7\tx\n"),
         "line 2: a row with 2 columns");
  expect(glue("SST-2", "s\tl\n\xff\t1\n"), "line 2: is no valid UTF-8");
  expect(glue("QNLI", "i\ta\tb\tl\n"), "there is no row");
  expect(message([&] { read_glue(find_task("RTE"), at("absent.tsv")); }), "absent.tsv");
  expect(message([] { find_task("MNL"); }), "MNLI");
  const auto race = [&](const std::string& line) {
    write("race/1.txt", line);
    return message([&] { read_race(at("race")); });
  };
  expect(race("{}"), "1.txt, line 1: article is missing; it must be a text");
  expect(race("{\n"), "1.txt, line 1: not valid JSON");
  expect(
      race(R"({"article": "a", "questions": ["q"], "options": [["a","b","c"]], "answers": ["A"]})"),
      "a question has 3 choices");
  expect(
      race(
          R"({"article": "a", "questions": ["q"], "options": [["a","b","c","d"]], "answers": ["E"]})"),
      "the answer 'E'");
  expect(race(R"({"article": "a", "questions": ["q"], "options": [], "answers": ["E"]})"),
         "1 questions");
  expect(message([&] { read_race(at("nowhere")); }), "does not exist");
  expect(message([&] { read_race(folder_.path().string()); }), "no .txt file");
}

TEST_F(Tasks, ChoicesOfRaceAreSequencesOfASample) {
  write("RACE/dev/high/2.txt",
        R"({"article": "a man . it", "questions": ["who _ it _", "who ?"],)"
        R"( "options": [["eats","a","he","it"],["a","man","dog","he"]], "answers": ["B","D"]})");
  TaskData::Options options{.length = 12};
  options.task = {.name = "RACE", .valid_data = {at("RACE/dev/high")}};
  const TaskData data(options, *tokenizer());
  ASSERT_EQ(data.sets().size(), 1U);
  EXPECT_EQ(data.sets()[0].name, "dev-high");
  const auto samples = data.of_set(data.sets()[0], 4);
  EXPECT_EQ(samples->size(), 4);
  HostBatch batch(DeviceKind::cpu, samples->fields(), 1);
  samples->read(0, Sample(batch, 0));
  const auto tokens = batch.array<std::int32_t>("tokens");
  ASSERT_EQ(tokens.size(), 48U);
  // who eats it eats, and then the passage
  EXPECT_EQ(Ids(tokens.begin(), tokens.begin() + 12), (Ids{2, 10, 7, 13, 7, 3, 5, 6, 8, 13, 3, 0}));
  EXPECT_EQ(batch.array<std::int32_t>("classes")[0], 1);
  EXPECT_EQ(batch.array<std::int32_t>("key_end")[13], 11);
}

TEST_F(Tasks, EpochsHaveOrdersOfTheirOwnAndKeepTheLastBatch) {
  std::string text = "sentence\tlabel\n";
  for (int i = 0; i < 10; ++i) {
    text += (i % 2 == 0 ? "a man\t" : "he eats\t") + std::to_string(i % 2) + "\n";
  }
  TaskData::Options options{.length = 8, .epochs = 2, .global_batch = 4, .seed = 1234};
  options.task = {.name = "SST-2", .train_data = {write("train.tsv", text)}};
  const TaskData whole(options, *tokenizer());
  EXPECT_EQ(whole.steps_per_epoch(), 2);
  EXPECT_EQ(whole.training()->size(), 16);
  options.task.keep_last = true;
  const TaskData kept(options, *tokenizer());
  EXPECT_EQ(kept.steps_per_epoch(), 3);
  const auto samples = kept.training();
  ASSERT_EQ(samples->size(), 24);
  HostBatch batch(DeviceKind::cpu, samples->fields(), 24);
  for (std::int64_t k = 0; k < 24; ++k) {
    samples->read(k, Sample(batch, k));
  }
  const auto weights = batch.array<float>("sample_weights");
  EXPECT_EQ(std::vector<float>(weights.begin() + 6, weights.begin() + 12),
            (std::vector<float>{1, 1, 2, 2, 0, 0}));
  // torch.randperm(10) after manual_seed(1234): 5 4 8 2 6 9 1 7 0 3
  const auto classes = batch.array<std::int32_t>("classes");
  EXPECT_EQ(Ids(classes.begin(), classes.begin() + 10), (Ids{1, 0, 0, 0, 0, 1, 1, 1, 0, 1}));
  options.task.keep_last = false;
  options.global_batch = 11;
  EXPECT_NE(message([&] { TaskData(options, *tokenizer()).steps_per_epoch(); }).find("--keep-last"),
            std::string::npos);
}

TEST(TaskMetrics, AreThoseOfSklearnAndScipy) {
  const std::vector<double> a = {1, 2, 2, 5, 4}, b = {2, 1, 4, 4, 9};
  EXPECT_NEAR(pearson(a, b), 0.59234888, 1e-8);
  EXPECT_NEAR(spearman(a, b), 0.60526316, 1e-8);
  TaskSamples samples(6);
  std::vector<TaskOutputs> outputs;
  for (const auto& [truth, told] : {std::pair{0, 0}, {1, 1}, {1, 0}, {0, 1}, {1, 1}, {1, 1}}) {
    samples[outputs.size()].label = truth;
    outputs.push_back(told == 1 ? TaskOutputs{0, 1} : TaskOutputs{1, 0});
  }
  const TaskScores scores = score(find_task("MRPC"), samples, outputs);
  EXPECT_EQ(scores.correct, 4);
  EXPECT_NEAR(scores.f1, 0.75, 1e-12);
  EXPECT_NEAR(scores.matthews, 0.25, 1e-12);
  EXPECT_NEAR(scores.best_by(TaskMetric::f1), (4 / 6.0 + 0.75) / 2, 1e-12);
  EXPECT_EQ(chosen({1, 3, 3}), 1);
  EXPECT_LT(TaskScores{.pearson = std::nan("")}.best_by(TaskMetric::correlation), -1);
}

TEST(TaskNames, AreMegatrons) {
  EXPECT_EQ(set_name(find_task("MNLI"), "GLUE/MNLI/dev_matched.tsv"), "dev-matched");
  EXPECT_EQ(set_name(find_task("QQP"), "/data/QQP/dev.tsv"), "dev");
  EXPECT_EQ(set_name(find_task("RACE"), "data/RACE/dev/middle"), "dev-middle");
  EXPECT_EQ(set_name(find_task("CoLA"), "dev.tsv"), "dev");
  EXPECT_EQ(set_name(find_task("MNLI"), "/data/glue/mnli/dev_matched.tsv"), "dev-matched");
  EXPECT_EQ(set_name(find_task("MNLI"), "/data/Mnli-2018/dev_matched.tsv"), "2018-dev-matched");
  EXPECT_EQ(set_name(find_task("MNLI"), "/data/other/dev_matched.tsv"), "data-other-dev-matched");
  EXPECT_EQ(set_name(find_task("RTE"), "/data/RTE/sorted.tsv"), "sorted");
  EXPECT_EQ(set_name(find_task("RTE"), "/data/rte/sorted.tsv"), "sorted");
  EXPECT_EQ(set_name(find_task("RTE"), "rte"), "");
}

}  // namespace
}  // namespace bloomery
