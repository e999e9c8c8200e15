#include "tokenizer/token_spans.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

std::shared_ptr<const Tokenizer> small(const std::string& kind) {
  const std::filesystem::path root = std::getenv("BLOOMERY_ROOT");
  return load_tokenizer({.path = root / "tests/golden/tokenizers" / kind});
}

// The bytes of each token, as the text has them.
std::vector<std::string> said(const Tokenizer& tokenizer, const std::string& text,
                              const EncodeOptions& options = {}) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder(options)->encode(text, ids);
  const auto spans = token_spans(tokenizer, ids, text);
  if (!spans) return {"no spans"};
  std::vector<std::string> result;
  for (const auto& [begin, end] : *spans) result.push_back(text.substr(begin, end - begin));
  return result;
}

// What all tokens stand for, each character once for the tokens that share it.
std::string joined(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder({.parse_control = true})->encode(text, ids);
  const auto spans = token_spans(tokenizer, ids, text);
  if (!spans) return "no spans";
  std::string all;
  std::size_t reached = 0;
  for (const auto& [begin, end] : *spans) {
    if (end <= reached) continue;
    all += text.substr(std::max(begin, reached), end - std::max(begin, reached));
    reached = end;
  }
  return all;
}

using Words = std::vector<std::string>;

// a, b, ab, and the unknown token; NFC composes.
std::shared_ptr<const Tokenizer> letters() {
  return read_hf_tokenizer(R"({
      "added_tokens": [{"id": 5, "content": "<s>", "special": true, "normalized": false}],
      "normalizer": {"type": "NFC"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<s>": {"ids": [5]}}},
      "model": {"type": "BPE", "unk_token": "?", "fuse_unk": true,
        "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "é": 4}, "merges": ["a b"]}})",
                           "tokenizer.json", {});
}

TEST(TokenSpans, ComposedCharactersHaveAllOfTheirParts) {
  EXPECT_EQ(said(*letters(), "abe\u0301a"), (Words{"ab", "e\u0301", "a"}));
  EXPECT_EQ(said(*letters(), "\u00E9b"), (Words{"\u00E9", "b"}));
}

TEST(TokenSpans, AnUnknownTokenHasWhatLiesBetweenItsNeighbours) {
  EXPECT_EQ(said(*letters(), "abxyzba"), (Words{"ab", "xyz", "b", "a"}));
  EXPECT_EQ(said(*letters(), "xyz"), (Words{"xyz"}));
}

TEST(TokenSpans, TokensAroundATextHaveNothing) {
  EXPECT_EQ(said(*letters(), "ab", {.add_special_tokens = true}), (Words{"", "ab"}));
  EXPECT_EQ(said(*letters(), "<s>ab", {.add_special_tokens = true}), (Words{"<s>", "", "ab"}));
}

TEST(TokenSpans, CoverTheTextOfEveryKindOfTokenizer) {
  const std::string text =
      "<s>[INST] caf\u00E9 e\u0301lan \U0001F642\U0001F642\U0001F642\U0001F642\U0001F642 [/INST] "
      "\u12A0\u121B\u122D\u129B \u12A0\u121B\u122D\u129B</s>\nback";
  for (const char* kind : {"llama2", "llama2/tokenizer.model", "mistral", "llama3"}) {
    EXPECT_EQ(joined(*small(kind), text), text) << kind;
  }
}

// Pieces of WordPiece leave out spaces and say ## in their place.
TEST(TokenSpans, WhereLittleIsFoundAgainNothingIsGuessed) {
  EXPECT_EQ(said(*small("bert/vocab.txt"), "hi there the end of it all is near"),
            (Words{"no spans"}));
}

TEST(TokenSpans, GiveUpOnWhatIsToldByNoToken) {
  const auto tokenizer = letters();
  const std::vector<TokenId> ids = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_FALSE(token_spans(*tokenizer, ids, std::string(20000, 'b') + "c"));
}

}  // namespace
}  // namespace bloomery
