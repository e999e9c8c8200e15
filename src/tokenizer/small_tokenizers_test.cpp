// A small tokenizer of each kind in the files that users bring, beside the ids of the program that
// it comes from (tools/golden/small_tokenizers.py): what a machine without shared data can test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/temporary_folder.h"
#include "harness/token_vectors.h"
#include "tokenizer/load.h"
#include "tokenizer/tokenizer_hash.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

std::filesystem::path folder_of_kind(const std::string& kind) {
  return std::filesystem::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/tokenizers" / kind;
}

std::shared_ptr<const Tokenizer> load(const std::string& kind) {
  const std::filesystem::path folder = folder_of_kind(kind);
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

std::string hash(const Tokenizer& tokenizer) {
  return tokenizer_hash(tokenizer, tokenizer.vocab_size());
}

std::string megatron_bert_hash(const char* type, std::int64_t extra_ids, std::int64_t num_ids) {
  TokenizerOptions options{.type = type, .vocab_extra_ids = extra_ids};
  options.vocab_file = folder_of_kind("bert") / "vocab.txt";
  return tokenizer_hash(*load_tokenizer(options), num_ids);
}

TEST(TokenizerHash, TellsTokenizersApart) {
  std::set<std::string> hashes;
  for (const char* kind : {"gpt2", "llama3", "llama2", "t5", "bert", "tiktoken"}) {
    EXPECT_EQ(hash(*load(kind)), hash(*load(kind)));
    EXPECT_TRUE(hashes.insert(hash(*load(kind))).second) << kind;
  }
  EXPECT_TRUE(hashes.insert(megatron_bert_hash("BertWordPieceCase", 0, 100)).second);
  EXPECT_TRUE(hashes.insert(megatron_bert_hash("BertWordPieceLowerCase", 0, 100)).second);
}

TEST(TokenizerHash, FilesOfOneTokenizerGiveOneHash) {
  TokenizerOptions folder;
  folder.path = folder_of_kind("gpt2");
  EXPECT_EQ(hash(*load("gpt2")), hash(*load_tokenizer(folder)));
  EXPECT_EQ(hash(*load("mistral")), hash(*load("llama2")));  // tokenizer.json, tokenizer.model
}

TEST(TokenizerHash, IdsBehindTheVocabularyChangeNothing) {
  const auto hash_with = [](std::int64_t extra) {
    return megatron_bert_hash("BertWordPieceLowerCase", extra, load("bert")->vocab_size());
  };
  EXPECT_EQ(hash_with(0), hash_with(10));
}

// The same vocabulary, of which two merges come in the other order.
TEST(TokenizerHash, MergesCount) {
  const TemporaryFolder folder;
  const auto merged = [&](const std::string& first, const std::string& second) {
    TokenizerOptions options{.type = "GPT2BPETokenizer"};
    options.vocab_file = folder.file(
        "vocab.json", R"({"t": 0, "h": 1, "e": 2, "th": 3, "he": 4, "<|endoftext|>": 5})");
    options.merge_file = folder.file("merges.txt", first + "\n" + second + "\n");
    return hash(*load_tokenizer(options));
  };
  EXPECT_NE(merged("t h", "h e"), merged("h e", "t h"));
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

// As T5Tokenizer has them: google/t5-v1_1-base, for one, comes without a tokenizer.json.
TEST(SentencePieceFolder, ExtraIdsOfT5CountFromTheEnd) {
  const TemporaryFolder folder;
  std::filesystem::copy(folder_of_kind("t5") / "spiece.model", folder.path() / "spiece.model");
  const auto pieces = static_cast<TokenId>(load("t5")->vocab_size());
  folder.file("special_tokens_map.json", R"({"eos_token": "</s>", "unk_token": "<unk>",
      "additional_special_tokens": ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]})");
  const auto listed = load_tokenizer({.path = folder.path()});
  EXPECT_EQ(listed->vocab_size(), pieces + 3);
  EXPECT_EQ(listed->find("<extra_id_0>"), pieces + 2);
  EXPECT_EQ(listed->find("<extra_id_2>"), pieces);
  folder.file("tokenizer_config.json", R"({"added_tokens_decoder": {")" + std::to_string(pieces) +
                                           R"(": {"content": "<extra_id_0>", "special": true}}})");
  EXPECT_EQ(load_tokenizer({.path = folder.path()})->find("<extra_id_0>"), pieces)
      << "an id that is given counts";
}

TEST(SentencePieceFolder, AddedTokensAreSpecialWhereItsFilesSaySo) {
  const TemporaryFolder folder;
  std::filesystem::copy(folder_of_kind("llama2") / "tokenizer.model",
                        folder.path() / "tokenizer.model");
  folder.file("tokenizer_config.json", R"({"eos_token": "<|end|>", "added_tokens_decoder": {
      "700": {"content": "<tool>", "special": false}, "701": {"content": "<|end|>"},
      "702": {"content": "<|start|>", "special": true}}})");
  const auto tokenizer = load_tokenizer({.path = folder.path()});
  EXPECT_EQ(encoded(*tokenizer, "<tool><|end|><|start|>"), (Ids{700, 701, 702}));
  EXPECT_FALSE(tokenizer->is_special(700));
  EXPECT_TRUE(tokenizer->is_special(701));
  EXPECT_TRUE(tokenizer->is_special(702));
  EXPECT_TRUE(tokenizer->is_special(1));  // <s>
}

TEST(SentencePieceFolder, AModelAloneIsRecognisedInWhatATemplateWrites) {
  const auto tokenizer = load("llama2");
  EXPECT_EQ(encoded(*tokenizer, "<s>", {.parse_control = true}), (Ids{1}));
  EXPECT_NE(encoded(*tokenizer, "<s>"), (Ids{1})) << "for SentencePiece it is text";
}

}  // namespace
}  // namespace bloomery
