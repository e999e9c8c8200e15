#include "tokenizer/load.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "config/option_table.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

std::string problem_of(const TokenizerOptions& options) {
  try {
    load_tokenizer(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_problem(const TokenizerOptions& options, const std::string& part) {
  const std::string problem = problem_of(options);
  EXPECT_NE(problem.find(part), std::string::npos) << problem;
}

constexpr char kJson[] =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<end>": 3, "</s>": 4},
        "merges": ["a b"]}})";

std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder()->encode(text, ids);
  return ids;
}

TEST(LoadTokenizer, RecognisesAFileByItsContents) {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& contents) {
    return load_tokenizer({.path = folder.file("any.name", contents).string()});
  };
  EXPECT_EQ(encode(*load(std::string("\n ") + kJson), "ab"), (std::vector<TokenId>{2}));
  EXPECT_EQ(encode(*load("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n"), "ab c"),
            (std::vector<TokenId>{4, 5, 1}));
  expect_problem({.path = folder.file("text", "What is this?\nNothing.\n").string()},
                 "is not a supported tokenizer");
  expect_problem({.path = folder.file("empty", "").string()}, "is empty");
}

TEST(LoadTokenizer, RecognisesRealFiles) {
  if (!shared_data("tokenizers")) GTEST_SKIP() << kNoSharedData;
  const auto load = [](const char* name) {
    return load_tokenizer({.path = shared_data(std::string("tokenizers/") + name)->string()});
  };
  EXPECT_EQ(load("sentencepiece/mistral-7b.model")->vocab_size(), 32000);
  EXPECT_EQ(load("sentencepiece/albert.spiece.model")->vocab_size(), 30000);
  EXPECT_EQ(load("bert/bert-large-cased-vocab.txt")->vocab_size(), 28996);
  EXPECT_EQ(load("bert/bert-base-chinese-vocab.txt")->vocab_size(), 21128);
}

TEST(LoadTokenizer, AFolderNamesItsSpecialTokens) {
  const TemporaryFolder folder;
  const std::string path = folder.file("tokenizer.json", kJson).parent_path().string();
  EXPECT_EQ(load_tokenizer({.path = path})->special().eos, 4);
  folder.file("tokenizer_config.json", R"({"eos_token": {"content": "<end>"}, "pad_token": null})");
  const auto tokenizer = load_tokenizer({.type = "HFTokenizer", .tokenizer_model = path});
  EXPECT_EQ(tokenizer->special().eos, 3);
  EXPECT_EQ(tokenizer->special().eod, 3);
  EXPECT_EQ(tokenizer->special().pad, std::nullopt);
  folder.file("tokenizer_config.json", "[");
  expect_problem({.path = path}, "tokenizer_config.json is not a JSON object");
  folder.file("tokenizer_config.json", std::string(1000, '['));
  expect_problem({.path = path}, "tokenizer_config.json: the JSON is nested");
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder()->encode(text, ids);
  return ids;
}

TEST(LoadTokenizer, AFolderAddsTokens) {
  const TemporaryFolder folder;
  const std::string path = folder.file("tokenizer.json", kJson).parent_path().string();
  folder.file("special_tokens_map.json", R"({"additional_special_tokens": ["<tool>", "<end>"]})");
  folder.file("added_tokens.json", R"({"<b>": 6, "<a>": 5})");
  const auto tokenizer = load_tokenizer({.path = path});
  EXPECT_EQ(encoded(*tokenizer, "<a><tool><b><end>ab"), (std::vector<TokenId>{5, 7, 6, 3, 2}));
  folder.file("added_tokens.json", R"({"<b>": "x"})");
  expect_problem({.path = path}, "is no number");
}

TEST(LoadTokenizer, AFolderOfVocabularyAndSettings) {
  const TemporaryFolder words, bytes;
  const std::string bert =
      words.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\nA\n").parent_path().string();
  EXPECT_EQ(encoded(*load_tokenizer({.path = bert}), "Ab"), (std::vector<TokenId>{6, 5}));
  words.file("tokenizer_config.json", R"({"do_lower_case": true})");
  EXPECT_EQ(encoded(*load_tokenizer({.path = bert}), "Ab[SEP]"), (std::vector<TokenId>{4, 5, 3}));
  bytes.file("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})");
  const std::string gpt2 = bytes.file("merges.txt", "#version: 0.2\na b\n").parent_path().string();
  const auto tokenizer = load_tokenizer({.path = gpt2});
  EXPECT_EQ(encoded(*tokenizer, "ab<|endoftext|>ba"), (std::vector<TokenId>{2, 3, 1, 0}));
  EXPECT_EQ(tokenizer->special().bos, 3);
}

TEST(LoadTokenizer, MegatronsTypesWithTheirFiles) {
  const TemporaryFolder folder;
  const std::string vocab = folder.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").string();
  const auto bert =
      load_tokenizer({.type = "BertWordPieceLowerCase", .vocab_file = vocab, .vocab_extra_ids = 2});
  EXPECT_EQ(bert->vocab_size(), 9);
  EXPECT_EQ(encode(*bert, "A"), (std::vector<TokenId>{4}));
  EXPECT_EQ(bert->find("[BOS]"), 5);
  EXPECT_EQ(bert->find("<extra_id_1>"), 8);

  const auto null = load_tokenizer({.type = "NullTokenizer", .vocab_size = 10});
  EXPECT_EQ(null->vocab_size(), 11);
  EXPECT_EQ(null->special().eod, 10);
  EXPECT_EQ(encode(*null, " 3 0\n10"), (std::vector<TokenId>{3, 0, 10}));
  EXPECT_EQ(null->decode(std::vector<TokenId>{3, 0, 10}), "3 0 10");
  EXPECT_THROW(encode(*null, "11"), Error);
  EXPECT_THROW(encode(*null, "3x"), Error);
  EXPECT_THROW(null->decode(std::vector<TokenId>{11}), Error);
}

TEST(LoadTokenizer, WrongCombinationsSayWhatIsMissing) {
  expect_problem({}, "no tokenizer is named; give --tokenizer PATH");
  expect_problem({.path = "x", .type = "HFTokenizer"}, "both name a tokenizer");
  expect_problem({.path = "/no/such/file"}, "/no/such/file does not exist");
  expect_problem({.type = "GPT2BPETokenizer"}, "GPT2BPETokenizer needs --vocab-file");
  expect_problem({.type = "GPT2BPETokenizer", .vocab_file = "x"}, "needs --merge-file");
  expect_problem({.type = "BertWordPieceCase"}, "BertWordPieceCase needs --vocab-file");
  for (const char* type : {"SentencePieceTokenizer", "Llama2Tokenizer", "GPTSentencePieceTokenizer",
                           "HFTokenizer", "TikTokenizer"}) {
    expect_problem({.type = type}, concat(type, " needs --tokenizer-model"));
  }
  expect_problem({.type = "NullTokenizer"}, "NullTokenizer needs --vocab-size");
  const TemporaryFolder folder;
  const std::string path = folder.file("note", "hello").parent_path().string();
  expect_problem({.path = path}, "holds no tokenizer");
}

TEST(LoadTokenizer, OlderSpellingsOfOptions) {
  TokenizerOptions options;
  OptionTable table;
  describe(table, options);
  table.read_flags({"--vocab", "v", "--merge-file", "m", "--tokenizer_type", "GPT2BPETokenizer",
                    "--tiktoken-pattern", "gpt2"});
  table.finish();
  EXPECT_EQ(options.vocab_file, "v");
  EXPECT_EQ(options.merge_file, "m");
  EXPECT_EQ(options.type, "GPT2BPETokenizer");
  EXPECT_EQ(options.pattern, "gpt2");
}

TEST(TextEncoding, IsThatOfTransformersOrMegatron) {
  const auto encoding = [](const char* type) { return text_encoding({.type = type}); };
  EXPECT_TRUE(encoding("").add_special_tokens);
  EXPECT_TRUE(encoding("").parse_special);
  EXPECT_TRUE(encoding("Llama2Tokenizer").add_special_tokens);
  EXPECT_TRUE(encoding("HFTokenizer").add_special_tokens);
  EXPECT_FALSE(encoding("GPTSentencePieceTokenizer").add_special_tokens);
  EXPECT_FALSE(encoding("GPT2BPETokenizer").add_special_tokens);
  EXPECT_FALSE(encoding("GPT2BPETokenizer").parse_special);
}

TEST(TextEncoding, APromptIsNotEnded) {
  const std::string path =
      std::string(std::getenv("BLOOMERY_ROOT")) + "/tests/golden/tokenizers/t5/spiece.model";
  const auto tokenizer = load_tokenizer({.path = path});
  std::vector<TokenId> whole, prompt;
  tokenizer->make_encoder({.add_special_tokens = true})->encode("the boat", whole);
  tokenizer->make_encoder(text_encoding({.path = path}))->encode("the boat", prompt);
  EXPECT_EQ(whole.back(), *tokenizer->special().eos);
  whole.pop_back();
  EXPECT_EQ(prompt, whole);
}

}  // namespace
}  // namespace bloomery
