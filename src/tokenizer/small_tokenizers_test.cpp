// A small tokenizer of each kind in the files that users bring, beside the ids of the program that
// it comes from (tools/golden/small_tokenizers.py): what a machine without shared data can test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
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
    options.path = kind == "bert"     ? folder / "vocab.txt"
                   : kind == "llama2" ? folder / "tokenizer.model"
                   : kind == "t5"     ? folder / "spiece.model"
                                      : folder;
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
  EXPECT_EQ(texts, 62);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SmallTokenizers,
                         testing::Values("gpt2", "llama3", "llama2", "mistral", "t5", "bert",
                                         "tiktoken"),
                         [](const auto& info) { return info.param; });

// A folder with a SentencePiece model, its tokenizer_config.json as given.
Ids of_folder(const std::string& config, const std::string& text,
              const EncodeOptions& options = {.add_special_tokens = true}) {
  const TemporaryFolder folder;
  const std::filesystem::path root = std::getenv("BLOOMERY_ROOT");
  std::filesystem::copy(root / "tests/golden/tokenizers/llama2/tokenizer.model",
                        folder.path() / "tokenizer.model");
  if (!config.empty()) folder.file("tokenizer_config.json", config);
  return encoded(*load_tokenizer({.path = folder.path()}), text, options);
}

// What LlamaTokenizer of transformers 5.23 makes of them.
TEST(SentencePieceFolder, TakesTheTokensOfItsConfigurationAsTransformersDoes) {
  const std::string text = "a <s>a</s>b";
  const std::string names = R"("bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>")";
  EXPECT_EQ(of_folder("{" + names + R"(, "add_bos_token": true, "legacy": false})", text),
            (Ids{1, 260, 517, 1, 519, 2, 531}));
  EXPECT_EQ(of_folder("{" + names + R"(, "add_bos_token": true, "legacy": true})", text),
            (Ids{1, 260, 517, 1, 260, 2, 267}));
  EXPECT_EQ(of_folder("{" + names + R"(, "add_bos_token": false, "add_eos_token": true})", text),
            (Ids{260, 517, 1, 519, 2, 531, 2}));
  EXPECT_EQ(of_folder(R"({"add_bos_token": true, "eos_token": "<|end|>",
                          "additional_special_tokens": ["<|start|>"]})",
                      "<|start|>a<|end|>a"),
            (Ids{1, 701, 519, 700, 519}));
}

// And GPT2Tokenizer, of vocab.json and merges.txt.
TEST(ByteLevelFolder, PutsTheTokensOfItsConfigurationAroundATextAsTransformersDoes) {
  const TemporaryFolder folder;
  const std::filesystem::path root = std::getenv("BLOOMERY_ROOT");
  std::filesystem::copy(root / "tests/golden/tokenizers/gpt2", folder.path(),
                        std::filesystem::copy_options::recursive);
  folder.file("tokenizer_config.json", R"({"add_bos_token": true, "add_eos_token": true})");
  const auto tokenizer = load_tokenizer({.path = folder.path()});
  const TokenId end = *tokenizer->special().eos;
  Ids expected = encoded(*tokenizer, "the boat");
  expected.insert(expected.begin(), end);
  expected.push_back(end);
  EXPECT_EQ(encoded(*tokenizer, "the boat", {.add_special_tokens = true}), expected);
}

TEST(SentencePieceFolder, AModelAloneIsRecognisedInWhatATemplateWrites) {
  const auto tokenizer = load("llama2");
  EXPECT_EQ(encoded(*tokenizer, "<s>", {.parse_control = true}), (Ids{1}));
  EXPECT_NE(encoded(*tokenizer, "<s>"), (Ids{1})) << "for SentencePiece it is text";
}

}  // namespace
}  // namespace bloomery
