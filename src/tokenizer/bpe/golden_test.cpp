// GPT-2 and tiktoken against vectors that other implementations made, with their real vocabularies.
#include <gtest/gtest.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "harness/shared_data.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/bpe/tiktoken.h"

namespace bloomery {
namespace {

std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text,
                             const EncodeOptions& options = {}) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder(options)->encode(text, ids);
  return ids;
}

std::shared_ptr<const Tokenizer> gpt2() {
  const auto folder = shared_data("tokenizers/gpt2");
  return folder ? load_gpt2(*folder / "gpt2-vocab.json", *folder / "gpt2-merges.txt") : nullptr;
}

std::shared_ptr<const Tokenizer> tiktoken(const std::string& name) {
  const auto packed = shared_data("tokenizers/tiktoken/" + name + ".tiktoken.xz");
  if (!packed) return nullptr;
  const TemporaryFolder folder;
  return load_tiktoken(folder.file(name, read_xz(*packed)));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<TokenId> numbers_in(const std::string& line) {
  std::vector<TokenId> ids;
  const char* end = line.data() + line.size();
  for (const char* at = line.data(); at < end; ++at) {
    TokenId id = 0;
    const auto parsed = std::from_chars(at, end, id);
    if (parsed.ec != std::errc()) continue;  // a space
    ids.push_back(id);
    at = parsed.ptr;
  }
  return ids;
}

TEST(Gpt2Golden, LlamaCppVectors) {
  const auto tokenizer = gpt2();
  if (!tokenizer) GTEST_SKIP() << kNoSharedData;
  const auto folder = *shared_data("tokenizers/golden/llama.cpp");
  const std::string inputs = read_file(folder / "common.inp");
  const std::vector<std::string> answers = lines_of(read_file(folder / "gpt-2.out"));
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  std::size_t number = 0, at = 0;
  for (std::size_t end = 0; (end = inputs.find(kSeparator, at)) != std::string::npos; ++number) {
    const std::string text = inputs.substr(at, end - at);
    ASSERT_LT(number, answers.size());
    EXPECT_EQ(encoded(*tokenizer, text), numbers_in(answers[number])) << text;
    at = end + kSeparator.size();
  }
  EXPECT_EQ(number, 46u);
}

TEST(Gpt2Golden, SwiftTransformersVectors) {
  const auto tokenizer = gpt2();
  if (!tokenizer) GTEST_SKIP() << kNoSharedData;
  const auto folder = *shared_data("tokenizers/golden/swift-transformers");
  const auto whole = nlohmann::json::parse(read_file(folder / "gpt2_encoded_tokens.json"));
  const auto ids = encoded(*tokenizer, whole["text"].get<std::string>());
  EXPECT_EQ(ids, whole["token_ids"].get<std::vector<TokenId>>());
  EXPECT_EQ(tokenizer->decode(ids), whole["decoded_text"].get<std::string>());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(tokenizer->piece(ids[i]), whole["bpe_tokens"][i].get<std::string>());
    ASSERT_EQ(tokenizer->find(tokenizer->piece(ids[i])), ids[i]);
  }
  const auto tests = nlohmann::json::parse(read_file(folder / "tokenizer_tests.json"));
  for (const auto& test : tests["distilgpt2"]) {
    const auto expected = test["encoded"]["input_ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(encoded(*tokenizer, test["input"].get<std::string>()), expected) << test["input"];
    EXPECT_EQ(tokenizer->decode(expected), test["input"].get<std::string>());
  }
}

TEST(ByteLevelGolden, MultilingualVectors) {
  const std::pair<const char*, std::shared_ptr<const Tokenizer>> tokenizers[] = {
      {"gpt2", gpt2()},
      {"cl100k_base", tiktoken("cl100k_base")},
      {"o200k_base", tiktoken("o200k_base")}};
  if (!tokenizers[0].second) GTEST_SKIP() << kNoSharedData;
  const std::string file = read_xz(*shared_data("tokenizers/golden/derived/multilingual.jsonl.xz"));
  int count = 0;
  for (const std::string& line : lines_of(file)) {
    const auto test = nlohmann::json::parse(line);
    const std::string text = test["text"];
    for (const auto& [name, tokenizer] : tokenizers) {
      const auto ids = encoded(*tokenizer, text, {.parse_special = false});
      ASSERT_EQ(ids, test["ids"][name].get<std::vector<TokenId>>()) << name << " on " << text;
      ASSERT_EQ(tokenizer->decode(ids), text);
    }
    ++count;
  }
  EXPECT_EQ(count, 577);
}

TEST(Gpt2Golden, AMegatronCorpus) {
  const auto folder = shared_data("megatron-indexed/openwebtext-1000");
  if (!folder) GTEST_SKIP() << kNoSharedData;
  const auto tokenizer =
      load_gpt2(*folder / "gpt2-tiny-vocab.json", *folder / "gpt2-tiny-merges.txt");
  ASSERT_EQ(tokenizer->special().eod, 4999);
  std::vector<TokenId> ids;
  const auto encoder = tokenizer->make_encoder({.parse_special = false});
  for (const std::string& line : lines_of(read_xz(*folder / "openwebtext-1000.jsonl.xz"))) {
    encoder->encode(nlohmann::json::parse(line)["text"].get<std::string>(), ids);
    ids.push_back(*tokenizer->special().eod);
  }
  const std::string corpus = read_file(*folder / "meg-gpt2-openwebtext_text_document.bin");
  std::vector<std::uint16_t> expected(corpus.size() / 2);
  std::memcpy(expected.data(), corpus.data(), corpus.size());
  ASSERT_EQ(ids.size(), expected.size());
  EXPECT_TRUE(std::ranges::equal(ids, expected));
}

TEST(TiktokenGolden, SpecialTokensInText) {
  const auto tokenizer = tiktoken("cl100k_base");
  if (!tokenizer) GTEST_SKIP() << kNoSharedData;
  const std::string text = "<|endoftext|>hello<|fim_middle|><|endofprompt|> <|endoftext";
  // tiktoken's encode(text, allowed_special="all") and encode_ordinary(text).
  EXPECT_EQ(encoded(*tokenizer, text),
            (std::vector<TokenId>{100257, 15339, 100259, 100276, 83739, 8862, 728, 428}));
  const auto plain = encoded(*tokenizer, text, {.parse_special = false});
  EXPECT_EQ(std::vector(plain.begin(), plain.begin() + 7),
            (std::vector<TokenId>{27, 91, 8862, 728, 428, 91, 29}));
  EXPECT_EQ(tokenizer->decode(encoded(*tokenizer, text)), text);
  EXPECT_EQ(tokenizer->vocab_size(), 100277);
  EXPECT_EQ(tokenizer->special().eod, 100257);
  EXPECT_EQ(tiktoken("o200k_base")->vocab_size(), 200019);
}

}  // namespace
}  // namespace bloomery
