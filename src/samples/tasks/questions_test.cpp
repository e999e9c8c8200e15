// Questions of DPR's files as samples of a retriever; tests/long/questions.py compares losses and
// ranks of whole runs with PyTorch's.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "samples/tasks/task_data.h"
#include "samples/tasks/task_metrics.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

using Ids = std::vector<std::int32_t>;

std::string passage(const std::string& text) {
  return R"({"title": "a", "text": ")" + text + R"(", "score": 1.5, "passage_id": "7"})";
}
std::string list(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += (all.empty() ? "" : ", ") + passage(text);
  }
  return "[" + all + "]";
}
std::string record(const std::string& question, const std::vector<std::string>& positive,
                   const std::vector<std::string>& hard, const std::vector<std::string>& other) {
  return R"({"dataset": "nq", "question": ")" + question + R"(", "answers": ["x"], )" +
         R"("positive_ctxs": )" + list(positive) + R"(, "negative_ctxs": )" + list(other) +
         R"(, "hard_negative_ctxs": )" + list(hard) + "}";
}

class Questions : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return (folder_.path() / name).string();
  }
  TaskData::Options options() const {
    TaskData::Options o{.length = 8, .epochs = 3, .global_batch = 2, .seed = 1234};
    o.task.name = "RET-FINETUNE-NQ";
    return o;
  }
  // Ids from 5 on.
  TaskData read(const TaskData::Options& options) const {
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (const char* word : {"a", "who", "man", "dog", "b", "c", "d", "e", "f", "g"}) {
      words += std::string(word) + "\n";
    }
    return {options, *load_tokenizer({.type = "BertWordPieceLowerCase",
                                      .vocab_file = write("vocab.txt", words)})};
  }
  HostBatch read_all(const Dataset& samples) const {
    HostBatch batch(DeviceKind::cpu, samples.fields(), samples.size());
    for (std::int64_t k = 0; k < samples.size(); ++k) {
      samples.read(k, Sample(batch, k));
    }
    return batch;
  }
  TemporaryFolder folder_;
};

template <class T>
std::vector<T> part(const HostBatch& batch, const char* name, std::int64_t sample) {
  const auto all = batch.array<T>(name);
  const std::size_t each = all.size() / static_cast<std::size_t>(batch.num_samples());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(each) * sample;
  return {begin, begin + static_cast<std::ptrdiff_t>(each)};
}

TEST_F(Questions, ArePassagesWithTheirTitles) {
  TaskData::Options o = options();
  o.task.valid_data = {
      write("nq-dev.v1.json",
            "[" + record("Who?", {"man b c d e f g", "b"}, {"c", "d", "e"}, {"f", "g"}) + "]")};
  o.task.questions.rank_among_hard = 2;
  o.task.questions.rank_among_other = 1;
  o.epochs = 0;
  const TaskData data = read(o);
  ASSERT_EQ(data.sets().size(), 1U);
  EXPECT_EQ(data.sets()[0].name, "nq-dev");
  const HostBatch batch = read_all(*data.of_set(data.sets()[0], 2));
  ASSERT_EQ(batch.num_samples(), 2);
  EXPECT_EQ(part<std::int32_t>(batch, "tokens", 0), (Ids{2, 6, 3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(part<std::int32_t>(batch, "key_end", 0), Ids(8, 3));
  // [CLS] a [SEP] and as much as fits, then others before hard ones
  EXPECT_EQ(part<std::int32_t>(batch, "encoder.tokens", 0),
            (Ids{2, 5, 3, 7,  9, 10, 11, 3, 2, 5, 3, 13, 3, 0, 0, 0,
                 2, 5, 3, 10, 3, 0,  0,  0, 2, 5, 3, 11, 3, 0, 0, 0}));
  EXPECT_EQ(part<float>(batch, "encoder.sample_weights", 0), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(part<float>(batch, "encoder.sample_weights", 1), (std::vector<float>{0, 0, 0, 0}))
      << "there is no second question";
}

TEST_F(Questions, DrawHardNegativesAndOthersWhereTheyAreFewer) {
  TaskData::Options o = options();
  o.epochs = 40;
  o.task.train_data = {write("train.json", "[" + record("who", {"b"}, {"c", "d", "e"}, {"f"}) +
                                               "," + record("man?", {"b"}, {"g"}, {"c", "d"}) +
                                               "," + record("dog", {"b"}, {}, {}) + "]")};
  o.task.questions.with_negatives = true;
  o.task.questions.hard_negatives = 2;
  o.task.keep_last = true;
  const TaskData data = read(o);
  EXPECT_EQ(data.steps_per_epoch(), 2);
  const std::unique_ptr<Dataset> samples = data.training();
  const HostBatch batch = read_all(*samples), again = read_all(*data.training());
  ASSERT_EQ(batch.num_samples(), 40 * 4);
  std::set<Ids> pairs;
  int missing = 0;
  for (std::int64_t k = 0; k < batch.num_samples(); ++k) {
    const Ids tokens = part<std::int32_t>(batch, "encoder.tokens", k);
    EXPECT_EQ(tokens, part<std::int32_t>(again, "encoder.tokens", k));
    const auto present = part<float>(batch, "encoder.sample_weights", k);
    const Ids texts = {tokens[3], tokens[8 + 3], tokens[16 + 3]};
    if (present[0] == 0) {
      ++missing;
      continue;
    }
    switch (part<std::int32_t>(batch, "tokens", k)[1]) {
      case 6:  // who: two of three hard ones, in any order
        EXPECT_EQ(present, (std::vector<float>{1, 1, 1}));
        EXPECT_NE(texts[1], texts[2]);
        pairs.insert(texts);
        break;
      case 7:  // man: the hard one, and one of the others
        EXPECT_EQ(texts[1], 14);
        EXPECT_TRUE(texts[2] == 10 || texts[2] == 11);
        pairs.insert(texts);
        break;
      default:
        EXPECT_EQ(present, (std::vector<float>{1, 0, 0}));
    }
  }
  EXPECT_EQ(missing, 40);
  EXPECT_EQ(pairs.size(), 6U + 2U) << "every epoch draws anew";
}

TEST_F(Questions, AreEvaluatedInMegatronsOrderAndSampled) {
  std::string records;
  for (int i = 0; i < 10; ++i) {
    records += (i == 0 ? "" : ",") + record("who", {"b"}, {}, {});
  }
  TaskData::Options o = options();
  o.task.train_data = {write("train.json", "[" + records + "]")};
  o.task.valid_data = {o.task.train_data[0], o.task.train_data[0]};
  const TaskData whole = read(o);
  EXPECT_EQ(whole.steps_per_epoch(), 5);
  std::vector<std::int64_t> uids;
  for (const TaskSample& sample : *whole.sets().at(0).samples) {
    uids.push_back(sample.uid);
  }
  ASSERT_EQ(uids.size(), 20U);
  EXPECT_EQ(std::set(uids.begin(), uids.end()).size(), 20U);
  EXPECT_FALSE(std::ranges::is_sorted(uids));
  o.task.questions.sample_rate = 0.45;
  const TaskData some = read(o);
  EXPECT_EQ(some.steps_per_epoch(), 2) << "of 4";
  EXPECT_EQ(some.sets().at(0).samples->size(), 9U);
  o.task.questions.sample_rate = 0.01;
  EXPECT_THROW(read(o), Error);
}

TEST_F(Questions, WhatIsWrongIsNamedWithItsRecord) {
  const std::string good = record("who", {"b"}, {}, {});
  const auto said = [&](const std::string& text) -> std::string {
    TaskData::Options o = options();
    o.task.train_data = {write("bad.json", text)};
    try {
      read(o);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string cut = good.substr(0, good.size() / 2);
  for (const auto& [text, message] : {
           std::pair<std::string, const char*>{"{}", "is no JSON list of records"},
           {"3", "is no JSON list of records"},
           {"", "is not valid JSON behind record 0"},
           {"[" + good + "," + cut, "is not valid JSON behind record 1"},
           {"[" + good + "] x", "is not valid JSON behind record 1"},
           {"[" + good + ", {\"question\": \"\xff\"}]", "is not valid JSON behind record 1"},
           {"[" + good + ", 5]", "bad.json, record 2: not a JSON object"},
           {"[[]]", "record 1: not a JSON object"},
           {"[{}]", "record 1: positive_ctxs is missing; it must be a list"},
           {R"([{"positive_ctxs": [{}]}])", "record 1: question is missing; it must be a text"},
           {R"([{"question": "", "positive_ctxs": [{}]}])", "the question is empty"},
           {R"([{"question": "q", "positive_ctxs": [{}]}])",
            "record 1: positive_ctxs[0]: title is missing; it must be a text"},
           {R"([{"question": "q", "positive_ctxs": [{"title": null, "text": 4}]}])",
            "record 1: positive_ctxs[0]: text is wrong; it must be a text"},
           {R"([{"question": "q", "positive_ctxs": [5]}])",
            "record 1: positive_ctxs[0] is wrong; it must be an object"},
           {R"([{"question": "q", "positive_ctxs": [{"title": "t", "text": "b"}]}])",
            "record 1: hard_negative_ctxs is missing; it must be a list"},
           {"[]", "there is no question"},
           {"[" + record("who", {}, {}, {}) + "]", "there is no question"},
       }) {
    EXPECT_NE(said(text).find(message), std::string::npos) << text << "\n" << said(text);
  }
  TaskData::Options o = options();
  o.task.train_data = {
      write("some.json", "[" + record("who", {}, {}, {}) + "," + good + "," + good + "]")};
  const TaskData data = read(o);
  EXPECT_EQ(data.steps_per_epoch(), 1);
  ASSERT_EQ(data.report().size(), 1U);
  EXPECT_NE(data.report()[0].find("1 questions have no passage"), std::string::npos);
}

TEST(QuestionScores, AreMeanRankAndWhoIsFound) {
  const std::vector<TaskOutputs> ranks = {{0}, {3}, {1}, {0}};
  const std::vector<std::int64_t> topk = {1, 2, 50};
  const TaskScores scores = judge_ranks(ranks, topk);
  EXPECT_EQ(scores.rank, 1);
  EXPECT_EQ(scores.total, 4);
  ASSERT_EQ(scores.found.size(), 3U);
  EXPECT_EQ(scores.found[0].percent, 50);
  EXPECT_EQ(scores.found[1].percent, 75);
  EXPECT_EQ(scores.found[2].percent, 100);
  EXPECT_GT(scores.best_by(TaskMetric::rank),
            judge_ranks(std::vector<TaskOutputs>{{2}}, topk).best_by(TaskMetric::rank));
}

}  // namespace
}  // namespace bloomery
