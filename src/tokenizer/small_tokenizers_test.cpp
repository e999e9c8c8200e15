// A small tokenizer of each kind in the files that users bring, beside the ids of the program that
// it comes from (tools/golden/small_tokenizers.py): what a machine without shared data can test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "harness/token_vectors.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const Tokenizer> load(const std::string& kind) {
  const std::filesystem::path folder =
      std::filesystem::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/tokenizers" / kind;
  TokenizerOptions options;
  if (kind == "gpt2") {
    options.type = "GPT2BPETokenizer";
    options.vocab_file = folder / "vocab.json";
    options.merge_file = folder / "merges.txt";
  } else if (kind == "tiktoken") {
    options.path = folder / "ranks.tiktoken";
    options.pattern = "cl100k";
  } else {
    options.path = kind == "bert" ? folder / "vocab.txt" : folder;
  }
  return load_tokenizer(options);
}

class SmallTokenizers : public testing::TestWithParam<std::string> {};

TEST_P(SmallTokenizers, GiveTheIdsOfTheirOwnPrograms) {
  const auto golden = nlohmann::json::parse(golden_file("tokenizers/golden.json"));
  const auto tokenizer = load(GetParam());
  int texts = 0;
  for (const auto& row : golden.at(GetParam())) {
    const std::string text = row[0];
    const Ids ids = row[1].get<Ids>();
    EXPECT_EQ(encoded(*tokenizer, text), ids) << text;
    EXPECT_EQ(encoded(*tokenizer, text, {.add_special_tokens = true}), row[2].get<Ids>()) << text;
    EXPECT_EQ(tokenizer->decode(ids), row[3].get<std::string>()) << text;
    ++texts;
  }
  EXPECT_EQ(texts, 61);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SmallTokenizers,
                         testing::Values("gpt2", "llama3", "llama2", "mistral", "t5", "bert",
                                         "tiktoken"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace bloomery
