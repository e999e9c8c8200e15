// Small tokenizer.json files against stored answers of Hugging Face tokenizers
// (tools/golden/hf_tokenizers.py), and what is said of files that are wrong.
#include "tokenizer/hf/hf_tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

using nlohmann::json;

std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::string& text,
                            const EncodeOptions& options = {}) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder(options)->encode(text, ids);
  return ids;
}

void expect_answers(const json& config) {
  SCOPED_TRACE(config["name"].get<std::string>());
  const auto tokenizer = read_hf_tokenizer(config["tokenizer"].dump(), "tokenizer.json");
  for (const json& known : config["encode"]) {
    const auto text = known["text"].get<std::string>();
    EXPECT_EQ(encode(*tokenizer, text), known["ids"].get<std::vector<TokenId>>()) << text;
    if (known.contains("added")) {
      EXPECT_EQ(encode(*tokenizer, text, {.add_special_tokens = true}),
                known["added"].get<std::vector<TokenId>>())
          << text;
    }
    if (known.contains("plain")) {
      EXPECT_EQ(encode(*tokenizer, text, {.parse_special = false}),
                known["plain"].get<std::vector<TokenId>>())
          << text;
    }
  }
  for (const json& known : config["decode"]) {
    EXPECT_EQ(tokenizer->decode(known["ids"].get<std::vector<TokenId>>()),
              known["text"].get<std::string>())
        << known["ids"];
  }
}

// Some models extend their vocabulary by very many tokens. A walk over all of them for each token
// takes minutes here.
TEST(HfTokenizer, ManyAddedTokensAreReadInLinearTime) {
  constexpr int kPieces = 100'000, kAdded = 200'000;
  json file = {{"model", {{"type", "BPE"}, {"vocab", json::object()}, {"merges", json::array()}}},
               {"decoder", {{"type", "ByteLevel"}}},
               {"added_tokens", json::array()}};
  for (int i = 0; i < kPieces; ++i) file["model"]["vocab"]["p" + std::to_string(i)] = i;
  for (int i = 0; i < kAdded; ++i) {
    file["added_tokens"].push_back({{"content", "<" + std::to_string(i) + ">"}});
  }
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = read_hf_tokenizer(file.dump(), "tokenizer.json");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(elapsed.count(), 30);
  EXPECT_EQ(tokenizer->vocab_size(), kPieces + kAdded);
  EXPECT_EQ(tokenizer->find("<199999>"), kPieces + kAdded - 1);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{kPieces + 7, 5}), "<7>p5");
}

TEST(HfTokenizer, EveryComponentAnswersAsTheReference) {
  std::istringstream lines(golden_file("hf_tokenizers.jsonl"));
  json observer;
  int configs = 0;
  for (std::string line; std::getline(lines, line);) {
    json config = json::parse(line);
    if (config.contains("observer")) {
      observer = config["observer"];
      continue;
    }
    if (config["tokenizer"]["model"] == "observer") config["tokenizer"]["model"] = observer;
    expect_answers(config);
    ++configs;
  }
  EXPECT_GT(configs, 100);
}

json small() {
  return {{"added_tokens", json::array()},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"<s>", 3}}},
            {"merges", json::array({"a b"})}}}};
}

std::string problem_of(const json& config) {
  try {
    read_hf_tokenizer(config.is_string() ? config.get<std::string>() : config.dump(), "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(HfTokenizer, AWrongFileIsNamedWithWhatIsWrong) {
  const auto expect = [](const json& config, const std::string& part) {
    const std::string problem = problem_of(config);
    EXPECT_TRUE(problem.starts_with("file.json")) << problem;
    EXPECT_NE(problem.find(part), std::string::npos) << problem;
  };
  expect("{\"model\": ", "not valid JSON");
  expect("[]", "not a JSON object");
  expect("{}", "it has no object 'model'");
  expect(std::string(1000000, '['), "nests its objects more than 100 deep");
  const auto changed = [](const char* path, json value) {
    json config = small();
    config[json::json_pointer(path)] = std::move(value);
    return config;
  };
  expect(changed("/model/type", "Magic"), "model of type 'Magic' is not known");
  expect(changed("/model/vocab", 7), "model.vocab is not an object");
  expect(changed("/model/vocab/a", -1), "the id of 'a' is -1");
  expect(changed("/model/vocab/a", 1e15), "the id of 'a'");
  expect(changed("/model/vocab/a", 2000000000), "the id of 'a' is 2000000000");
  expect(changed("/model/merges/0", "a c"), "needs the token 'c'");
  expect(changed("/model/merges/0", "b a"), "needs the token 'ba'");
  expect(changed("/model/merges/0", "ab"), "two tokens with a space between");
  expect(changed("/model/dropout", 0.1), "model.dropout");
  expect(changed("/normalizer/type", "NFX"), "normalizer of type 'NFX' is not known");
  expect(changed("/pre_tokenizer/type", "Cut"), "pre_tokenizer of type 'Cut' is not known");
  expect(changed("/decoder/type", "Un"), "decoder of type 'Un' is not known");
  expect(changed("/post_processor/type", "P"), "post_processor of type 'P' is not known");
  expect(changed("/added_tokens/0/content", 3), "content is wrong");
  expect(
      changed("/pre_tokenizer",
              {{"type", "Split"}, {"pattern", {{"Regex", "(a|b)\\1"}}}, {"behavior", "Isolated"}}),
      "back references are not supported");
  expect(changed("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "!"}}),
         "precompiled_charsmap is wrong");
}

TEST(HfTokenizer, TheVocabularyIsThere) {
  const auto tokenizer = read_hf_tokenizer(small().dump(), "file.json");
  EXPECT_EQ(tokenizer->vocab_size(), 4);
  EXPECT_EQ(tokenizer->find("ab"), 2);
  EXPECT_EQ(tokenizer->find("c"), std::nullopt);
  EXPECT_EQ(tokenizer->piece(2), "ab");
  EXPECT_EQ(tokenizer->piece(4), "");
  EXPECT_EQ(tokenizer->special().bos, 3);
  for (const TokenId id : {-1, 4}) {
    EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{id}), Error);
  }
}

}  // namespace
}  // namespace bloomery
