// `bloomery data samples` as a user meets it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/bloomery.h"
#include "base/temporary_folder.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {
namespace {

class DataSamplesTest : public testing::Test {
 protected:
  // Eight documents; token i of document d is 100 * d + i.
  DataSamplesTest() : prefix_((folder_.path() / "corpus").string()) {
    IndexedWriter writer(prefix_, TokenType::u16);
    for (const int length : {3, 5, 2, 7, 4, 6, 1, 8}) {
      std::vector<TokenId> tokens;
      for (int i = 0; i < length; ++i) {
        tokens.push_back(static_cast<TokenId>(100 * writer.num_documents() + i));
      }
      writer.add_sequence(tokens);
      writer.end_document();
    }
    writer.commit();
  }

  int run(Arguments arguments) {
    arguments.insert(arguments.begin(), {"data", "samples"});
    out_.str("");
    errors_.str("");
    return run_bloomery(arguments, out_, errors_);
  }

  TemporaryFolder folder_;
  std::string prefix_;
  std::ostringstream out_, errors_;
};

TEST_F(DataSamplesTest, PrintsTokens) {
  const Arguments common = {"--data-path",  prefix_, "--split",       "1,0,0",
                            "--seq-length", "4",     "--num-samples", "7"};
  Arguments json = common;
  json.insert(json.end(), {"--which", "train", "--first", "6", "--count", "2", "--json"});
  ASSERT_EQ(run(json), 0) << errors_.str();
  std::istringstream lines(out_.str());
  std::string line;
  std::getline(lines, line);
  const auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["sample"], 6);
  EXPECT_EQ(first["tokens"].get<std::vector<int>>(), (std::vector<int>{102, 103, 104, 600, 0}));
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["sample"], 7);

  ASSERT_EQ(run(common), 0);
  EXPECT_EQ(out_.str(), "0: 505 300 301 302 303\n");
}

TEST_F(DataSamplesTest, BlendsAndSeparatePaths) {
  EXPECT_EQ(run({"--data-path", "0.7", prefix_, "0.3", prefix_, "--split", "1,0,0", "--seq-length",
                 "4", "--num-samples", "5", "--count", "5"}),
            0)
      << errors_.str();
  EXPECT_EQ(run({"--valid-data-path", prefix_, "--seq-length", "4", "--which", "valid"}), 0);
}

TEST_F(DataSamplesTest, WarnsOnceOfUncountedTokens) {
  std::ofstream(prefix_ + ".bin", std::ios::app) << std::string(16, 'x');
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"--data-path", "1", prefix_, "1", prefix_, "--split", "1,0,0", "--seq-length", "4",
                 "--num-samples", "4", "--count", "4"}),
            0);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("end-of-document"), std::string::npos) << log;
  EXPECT_EQ(log.find("end-of-document"), log.rfind("end-of-document")) << log;
}

TEST_F(DataSamplesTest, MistakesExitWithTwo) {
  EXPECT_EQ(run({"--data-path", prefix_, "--split", "1,0,0", "--seq-length", "4", "--first", "8"}),
            2);
  EXPECT_NE(errors_.str().find("the train split has 8"), std::string::npos) << errors_.str();
  EXPECT_EQ(run({"--data-path", prefix_, "--split", "1,0,0", "--seq-length", "4", "--first", "7",
                 "--count", "2"}),
            2);
  EXPECT_EQ(run({"--data-path", prefix_, "--split", "1,0,0", "--seq-length", "4", "--count",
                 "9223372036854775807"}),
            2);
  EXPECT_EQ(
      run({"--data-path", prefix_, "--split", "1,0,0", "--seq-length", "4", "--which", "test"}), 2);
  EXPECT_EQ(run({"--data-path", prefix_ + "-none", "--seq-length", "4"}), 2);
  EXPECT_EQ(run({"--data-path", prefix_}), 2);
  EXPECT_EQ(run({"--seq-length", "4"}), 2);
  EXPECT_EQ(run({"--data-path", prefix_, "--test-data-path", prefix_, "--seq-length", "4"}), 2);
  EXPECT_EQ(run({"--data-path", prefix_, "--seq-length", "4", "--data-impl", "lazy"}), 2);
  EXPECT_EQ(run({"--data-path", "x", prefix_, "--seq-length", "4"}), 2);
}

TEST_F(DataSamplesTest, PrintsMaskedSamples) {
  const std::string prefix = (folder_.path() / "sentences").string();
  IndexedWriter writer(prefix, TokenType::u16);
  for (int document = 0; document < 20; ++document) {
    for (int sentence = 0; sentence < 4; ++sentence) {
      writer.add_sequence(std::vector<TokenId>{5, 6, 7, 8, 9, 5, 6});
    }
    writer.end_document();
  }
  writer.commit();
  const std::string vocabulary =
      folder_.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##c\nd\ne\n").string();
  const Arguments common = {
      "--data-path",  prefix,     "--split",          "1,0,0",
      "--seq-length", "32",       "--num-samples",    "10",
      "--vocab-file", vocabulary, "--tokenizer-type", "BertWordPieceLowerCase",
      "--kind"};
  Arguments bert = common;
  bert.insert(bert.end(), {"bert", "--json"});
  ASSERT_EQ(run(bert), 0) << errors_.str();
  const auto sample = nlohmann::json::parse(out_.str());
  EXPECT_EQ(sample["tokens"].size(), 32u);
  EXPECT_EQ(sample["tokens"][0], 2);  // [CLS]
  EXPECT_EQ(sample["loss_mask"].size(), 32u);
  EXPECT_GT(sample["lengths"], 10);
  EXPECT_TRUE(sample["is_random"] == 0 || sample["is_random"] == 1);

  Arguments t5 = common;
  t5.insert(t5.end(), {"t5", "--decoder-seq-length", "20", "--vocab-extra-ids", "10"});
  ASSERT_EQ(run(t5), 0) << errors_.str();
  EXPECT_EQ(out_.str().rfind("0 encoder_tokens: ", 0), 0u) << out_.str();
  EXPECT_NE(out_.str().find("\n0 labels: "), std::string::npos) << out_.str();

  t5.resize(t5.size() - 2);
  EXPECT_EQ(run(t5), 2);
  EXPECT_NE(errors_.str().find("--vocab-extra-ids"), std::string::npos) << errors_.str();
  EXPECT_EQ(run({"--data-path", prefix, "--seq-length", "32", "--kind", "bert"}), 2);
  EXPECT_NE(errors_.str().find("tokenizer"), std::string::npos) << errors_.str();
}

TEST_F(DataSamplesTest, ExplainsItself) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_NE(out_.str().find("--data-cache-path"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
