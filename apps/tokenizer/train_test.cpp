#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/bloomery.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

class TokenizerTrain : public ::testing::Test {
 protected:
  TokenizerTrain() {
    std::ofstream text(folder_ / "in.txt"), lines(folder_ / "in.jsonl");
    for (int i = 0; i < 20'000; ++i) {  // several chunks
      const std::string line = "the forge's ore number " + std::to_string(i % 997) +
                               " glows, Hütte 鉄鉱石 is heated and heated again";
      text << line << "\n";
      lines << "{\"text\": \"" << line << "\", \"title\": \"ore\"}\n";
    }
  }

  int train(const std::string& input, const std::string& output, Arguments further = {}) {
    Arguments arguments = {"tokenizer", "train",          "--input",      folder_ / input,
                           "--output",  folder_ / output, "--vocab-size", "600"};
    arguments.insert(arguments.end(), further.begin(), further.end());
    std::ostringstream out, errors;
    const int code = run_bloomery(arguments, out, errors);
    errors_ = errors.str();
    return code;
  }
  std::string file(const std::string& output, const char* name) const {
    return read_file(folder_ / output / name);
  }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  std::string errors_;
};

constexpr const char* kText = "The ore-heated FORGE'S 12345  \n\n Hütte 鉄 🔥 <|endoftext|> end  ";

TEST_F(TokenizerTrain, EveryPatternLoadsAndGivesTheTextBack) {
  for (const char* pattern : {"none", "gpt2", "cl100k", "llama3", "qwen2", "qwen3_5", "o200k"}) {
    ASSERT_EQ(train("in.txt", pattern, {"--pattern", pattern}), kFinished) << errors_;
    const auto loaded = load_tokenizer({.path = folder_ / pattern / "tokenizer.json"});
    EXPECT_EQ(loaded->find("<|endoftext|>"), 0);
    std::vector<TokenId> ids;
    loaded->make_encoder()->encode(kText, ids);
    EXPECT_EQ(loaded->decode(ids), kText) << pattern;
    EXPECT_LT(ids.size(), std::string_view(kText).size());
  }
}

TEST_F(TokenizerTrain, WhatEndsEarlyLeavesNoFolder) {
  std::ofstream(folder_ / "empty.txt");
  EXPECT_NE(train("empty.txt", "a/b"), kFinished);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
  ASSERT_EQ(train("in.txt", "a/b"), kFinished) << errors_;
  EXPECT_EQ(visible_names(folder_ / "a"), std::vector<std::string>{"b"});
}

TEST_F(TokenizerTrain, Gpt2FilesGiveTheSameIds) {
  ASSERT_EQ(train("in.txt", "out"), kFinished) << errors_;
  TokenizerOptions options;
  options.type = "GPT2BPETokenizer";
  options.vocab_file = folder_ / "out/vocab.json";
  options.merge_file = folder_ / "out/merges.txt";
  std::vector<TokenId> ids, ids_of_json;
  const EncodeOptions plain{.parse_special = false};
  load_tokenizer(options)->make_encoder(plain)->encode(kText, ids);
  const auto json = load_tokenizer({.path = folder_ / "out/tokenizer.json"});
  json->make_encoder(plain)->encode(kText, ids_of_json);
  EXPECT_EQ(ids, ids_of_json);
}

TEST_F(TokenizerTrain, WorkersAndFormatsDoNotMatter) {
  ASSERT_EQ(train("in.txt", "one", {"--workers", "1"}), kFinished) << errors_;
  for (const char* workers : {"2", "7"}) {
    ASSERT_EQ(train("in.txt", "more", {"--num-threads", workers, "--overwrite"}), kFinished);
    ASSERT_EQ(train("in.jsonl", "lines", {"--workers", workers, "--overwrite"}), kFinished);
    for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
      EXPECT_EQ(file("one", name), file("more", name));
      EXPECT_EQ(file("one", name), file("lines", name));
    }
  }
}

TEST_F(TokenizerTrain, LimitsTakeTheBeginning) {
  ASSERT_EQ(train("in.txt", "two", {"--limit-documents", "2"}), kFinished) << errors_;
  std::ofstream(folder_ / "head.txt")
      << "the forge's ore number 0 glows, Hütte 鉄鉱石 is heated and heated again\n"
      << "the forge's ore number 1 glows, Hütte 鉄鉱石 is heated and heated again\n";
  ASSERT_EQ(train("head.txt", "head"), kFinished) << errors_;
  EXPECT_EQ(file("two", "tokenizer.json"), file("head", "tokenizer.json"));
  const auto bytes = std::filesystem::file_size(folder_ / "head.txt");
  ASSERT_EQ(train("in.txt", "bytes", {"--limit-bytes", std::to_string(bytes + 5)}), kFinished);
  EXPECT_EQ(file("bytes", "tokenizer.json"), file("head", "tokenizer.json"));
}

TEST_F(TokenizerTrain, AnExistingTokenizerStaysUnlessAskedFor) {
  ASSERT_EQ(train("in.txt", "out"), kFinished) << errors_;
  const std::string before = file("out", "tokenizer.json");
  EXPECT_EQ(train("in.txt", "out", {"--vocab-size", "700"}), kBadInput);
  EXPECT_NE(errors_.find("--overwrite"), std::string::npos) << errors_;
  EXPECT_EQ(file("out", "tokenizer.json"), before);
  EXPECT_EQ(train("in.txt", "out", {"--vocab-size", "700", "--overwrite"}), kFinished) << errors_;
  EXPECT_NE(file("out", "tokenizer.json"), before);
}

TEST_F(TokenizerTrain, FaultsOfTheUserAreCodeTwo) {
  EXPECT_EQ(train("missing.txt", "out"), kBadInput);
  EXPECT_NE(errors_.find("missing.txt"), std::string::npos);
  EXPECT_EQ(train("in.txt", "in.jsonl/below"), kBadInput);
  EXPECT_NE(errors_.find("cannot be made"), std::string::npos) << errors_;
  EXPECT_EQ(train("in.txt", "out", {"--special-tokens", "<s>", "<s>"}), kBadInput);
  std::ofstream(folder_ / "empty.txt") << "\n  \n";
  EXPECT_EQ(train("empty.txt", "out"), kBadInput);
  EXPECT_NE(errors_.find("no text"), std::string::npos) << errors_;
  std::ofstream(folder_ / "bad.jsonl") << "{\"text\": \"good\"}\n{\"other\": 1}\n";
  EXPECT_EQ(train("bad.jsonl", "out", {"--strict"}), kBadInput);
  EXPECT_NE(errors_.find("line at byte 17"), std::string::npos) << errors_;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/tokenizer.json"));
  EXPECT_EQ(train("bad.jsonl", "out"), kFinished);

  std::ostringstream out, errors;
  EXPECT_EQ(run_bloomery({"tokenizer", "train", "--output", folder_}, out, errors), kBadInput);
  EXPECT_EQ(run_bloomery({"tokenizer", "train", "--input", folder_ / "in.txt", "--output", folder_,
                          "--vocab-size", "256"},
                         out, errors),
            kBadInput);
  EXPECT_NE(errors.str().find("at least 257"), std::string::npos) << errors.str();
}

}  // namespace
}  // namespace bloomery
