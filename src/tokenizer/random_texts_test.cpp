// Every vocabulary of the shared data folder on random texts, beside what its reference
// implementation makes of them (tools/golden/tokenizer_fuzz.py). tests/long/tokenizer_fuzz.py does
// the same with many more texts, and shows where ids differ.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "harness/token_vectors.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

using nlohmann::json;

std::shared_ptr<const Tokenizer> load_source(const std::string& source) {
  const TemporaryFolder folder;
  TokenizerOptions options;
  if (source == "gpt2 vocab+merges") {
    const std::filesystem::path files = *shared_data("tokenizers/gpt2");
    options.type = "GPT2BPETokenizer";
    options.vocab_file = files / "gpt2-vocab.json";
    options.merge_file = files / "gpt2-merges.txt";
  } else if (source.ends_with(".xz")) {
    options.path = folder.file("unpacked", read_xz(*shared_data("tokenizers/" + source)));
  } else {
    options.path = *shared_data("tokenizers/" + source);
  }
  return load_tokenizer(options);
}

EncodeOptions mode_named(const std::string& name) {
  check(name == "plain" || name == "added" || name == "as text", "the mode ", name,
        " is not known");
  return {.add_special_tokens = name == "added", .parse_special = name != "as text"};
}

void compare(const std::string& source, const json& texts, const json& golden) {
  const auto tokenizer = load_source(source);
  std::vector<std::unique_ptr<Encoder>> encoders;
  for (const json& mode : golden.at("modes")) {
    encoders.push_back(tokenizer->make_encoder(mode_named(mode)));
  }
  ASSERT_EQ(golden.at("fingerprints").size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = texts[i];
    std::vector<TokenId> ids;
    encoders[0]->encode(text, ids);
    const std::string decoded = tokenizer->decode(ids);
    for (std::size_t mode = 1; mode < encoders.size(); ++mode) {
      ids.push_back(-1);
      encoders[mode]->encode(text, ids);
    }
    EXPECT_EQ(token_fingerprint(ids, decoded).substr(0, 8), golden.at("fingerprints")[i])
        << source << ": " << texts[i];
  }
}

TEST(RandomTexts, EveryVocabularyAgreesWithItsReference) {
  if (!shared_data("tokenizers")) GTEST_SKIP() << kNoSharedData;
  const json golden = json::parse(golden_file("tokenizer_fuzz.json"));
  EXPECT_EQ(golden.at("tokenizers").size(), 24U);
  for (const auto& [source, expected] : golden.at("tokenizers").items()) {
    compare(source, golden.at("texts"), expected);
  }
}

}  // namespace
}  // namespace bloomery
