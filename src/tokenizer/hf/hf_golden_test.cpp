// Real tokenizer.json files against ids that others published: llama.cpp's and
// swift-transformers' vectors, and 577 texts in 531 languages.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "harness/shared_data.h"
#include "tokenizer/hf/hf_tokenizer.h"

namespace bloomery {
namespace {

using nlohmann::json;

std::string shared_text(const std::string& name) {
  const std::filesystem::path path = *shared_data("tokenizers/" + name);
  return path.extension() == ".xz" ? read_xz(path) : read_file(path);
}

// Each file is read once for all tests.
std::shared_ptr<const Tokenizer> load(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const Tokenizer>> loaded;
  auto& tokenizer = loaded[name];
  if (!tokenizer) tokenizer = read_hf_tokenizer(shared_text(name + ".json.xz"), name);
  return tokenizer;
}

std::vector<TokenId> encode(Encoder& encoder, const std::string& text) {
  std::vector<TokenId> ids;
  encoder.encode(text, ids);
  return ids;
}

class HfGolden : public testing::Test {
 protected:
  void SetUp() override {
    if (!shared_data("tokenizers/golden")) GTEST_SKIP() << kNoSharedData;
  }
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == text.npos) return parts;
    at = end + separator.size();
  }
}

TEST_F(HfGolden, VectorsOfLlamaCpp) {
  const std::pair<const char*, const char*> sets[] = {
      {"gpt-2", "gpt2/gpt2-tokenizer-new"}, {"gpt-2", "gpt2/gpt2-tokenizer-old"},
      {"mpt", "hf-json/gpt-neox-20b"},      {"falcon", "hf-json/falcon-7b"},
      {"qwen2", "hf-json/qwen2.5"},         {"bert-bge", "hf-json/bert-base-uncased"}};
  const std::vector<std::string> texts =
      split(shared_text("golden/llama.cpp/common.inp"), "\n__ggml_vocab_test__\n");
  for (const auto& [vectors, name] : sets) {
    const auto tokenizer = load(name);
    const auto encoder = tokenizer->make_encoder();
    const std::vector<std::string> lines =
        split(shared_text(std::string("golden/llama.cpp/") + vectors + ".out"), "\n");
    ASSERT_GE(lines.size(), 46u);
    for (std::size_t i = 0; i < 46; ++i) {
      std::istringstream numbers(lines[i]);
      const std::vector<TokenId> expected{std::istream_iterator<TokenId>(numbers), {}};
      EXPECT_EQ(encode(*encoder, texts[i]), expected) << name << ", text " << i;
    }
  }
}

TEST_F(HfGolden, VectorsOfSwiftTransformers) {
  const std::pair<const char*, const char*> sets[] = {
      {"bert-base-uncased", "hf-json/bert-base-uncased"},
      {"distilgpt2", "gpt2/gpt2-tokenizer-new"},
      {"tiiuae/falcon-7b", "hf-json/falcon-7b"},
      {"t5-base", "hf-json/t5-small"}};
  const json all = json::parse(shared_text("golden/swift-transformers/tokenizer_tests.json"));
  for (const auto& [key, name] : sets) {
    const auto tokenizer = load(name);
    const auto encoder = tokenizer->make_encoder({.add_special_tokens = true});
    ASSERT_GE(all[key].size(), 18u);
    for (const json& known : all[key]) {
      EXPECT_EQ(encode(*encoder, known["input"]),
                known["encoded"]["input_ids"].get<std::vector<TokenId>>())
          << name << ": " << known["input"];
    }
  }
}

TEST_F(HfGolden, ALongTextAndBack) {
  const std::pair<const char*, const char*> sets[] = {
      {"falcon_encoded", "hf-json/falcon-7b"},
      {"t5_base_encoded", "hf-json/t5-small"},
      {"gpt2_encoded_tokens", "gpt2/gpt2-tokenizer-old"}};
  for (const auto& [vectors, name] : sets) {
    const auto tokenizer = load(name);
    const json known =
        json::parse(shared_text(std::string("golden/swift-transformers/") + vectors + ".json"));
    const auto ids = known["token_ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(encode(*tokenizer->make_encoder({.add_special_tokens = true}), known["text"]), ids);
    EXPECT_EQ(tokenizer->decode(ids), known["decoded_text"].get<std::string>()) << name;
  }
}

TEST_F(HfGolden, TenThousandQuestions) {
  const auto tokenizer = load("hf-json/bert-base-uncased");
  const auto encoder = tokenizer->make_encoder();
  const json questions =
      json::parse(shared_text("golden/swift-transformers/bert_question_tokens.json.xz"));
  const json ids = json::parse(shared_text("golden/swift-transformers/bert_question_ids.json.xz"));
  ASSERT_EQ(questions.size(), 10570u);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    ASSERT_EQ(encode(*encoder, questions[i]["original"]), ids[i].get<std::vector<TokenId>>()) << i;
  }
}

TEST_F(HfGolden, TextsInManyLanguages) {
  const std::pair<const char*, const char*> sets[] = {
      {"gpt2", "gpt2/gpt2-tokenizer-new"},
      {"gpt-neox-20b", "hf-json/gpt-neox-20b"},
      {"qwen2.5", "hf-json/qwen2.5"},
      {"cl100k_base", "hf-json/dolma2-cl100k"},
      {"bert-base-uncased", "hf-json/bert-base-uncased"}};
  std::vector<json> texts;
  std::istringstream lines(shared_text("golden/derived/multilingual.jsonl.xz"));
  for (std::string line; std::getline(lines, line);) texts.push_back(json::parse(line));
  ASSERT_EQ(texts.size(), 577u);
  for (const auto& [key, name] : sets) {
    const auto tokenizer = load(name);
    const auto encoder = tokenizer->make_encoder();
    for (const json& known : texts) {
      const auto ids = known["ids"][key].get<std::vector<TokenId>>();
      EXPECT_EQ(encode(*encoder, known["text"]), ids) << name << ": " << known["id"];
    }
  }
}

}  // namespace
}  // namespace bloomery
