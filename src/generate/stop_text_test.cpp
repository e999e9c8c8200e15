#include "generate/stop_text.h"

#include <gtest/gtest.h>

#include "tokenizer/null_tokenizer.h"

namespace bloomery {
namespace {

// Ids are bytes.
class ByteTokenizer : public Tokenizer {
 public:
  std::unique_ptr<Encoder> make_encoder(const EncodeOptions&) const override { return nullptr; }
  std::string decode(std::span<const TokenId> ids) const override {
    std::string bytes(ids.begin(), ids.end());
    for (std::size_t i = 0; i < bytes.size(); ++i) {  // an incomplete two-byte character at the end
      if ((bytes[i] & 0xE0) == 0xC0 && i + 1 == bytes.size()) {
        return bytes.substr(0, i) + "\xEF\xBF\xBD";
      }
    }
    return bytes;
  }
  std::int64_t vocab_size() const override { return 256; }
  std::string piece(TokenId id) const override { return std::string(1, static_cast<char>(id)); }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string surface(TokenId id) const override { return piece(id); }
  bool is_special(TokenId id) const override { return id == '$'; }
  const SpecialTokens& special() const override { return special_; }

 private:
  SpecialTokens special_;
};

struct Pieces {
  std::vector<std::string> pieces;  // one for each byte until it stopped
  std::string rest, text;
  bool stopped = false;
};

Pieces push_all(const std::vector<std::string>& stops, std::string_view bytes) {
  const ByteTokenizer tokenizer;
  StopText text(tokenizer, stops, {});
  Pieces result;
  for (const char byte : bytes) {
    result.pieces.push_back(text.push(static_cast<unsigned char>(byte)));
    if (text.stopped()) {
      break;
    }
  }
  result.stopped = text.stopped();
  result.rest = text.finish();
  result.text = text.text();
  return result;
}

TEST(StopText, SkipsSpecialTokensIfAsked) {
  const ByteTokenizer tokenizer;
  for (const bool skip : {false, true}) {
    StopText text(tokenizer, {}, std::vector<TokenId>{'$', 'p'}, skip);
    EXPECT_EQ(text.push('a') + text.push('$') + text.push('b') + text.finish(),
              skip ? "ab" : "a$b");
  }
}

TEST(StopText, EndsBeforeTheStopString) {
  const Pieces one = push_all({"END"}, "abENcENDx");
  EXPECT_TRUE(one.stopped);
  EXPECT_EQ(one.text, "abENc");
  EXPECT_EQ(one.pieces, (std::vector<std::string>{"a", "b", "", "", "ENc", "", "", ""}));
  EXPECT_EQ(one.rest, "");
}

TEST(StopText, OverlappingBeginnings) {
  EXPECT_EQ(push_all({"aab"}, "xaaab").text, "xa");
  EXPECT_EQ(push_all({"abac", "bab"}, "ababac").text, "a");
  EXPECT_EQ(push_all({"\n", "\n\n"}, "one\n\ntwo").text, "one");
}

TEST(StopText, WhatWasHeldBackComesAtTheEnd) {
  const Pieces held = push_all({"stop"}, "sto");
  EXPECT_FALSE(held.stopped);
  EXPECT_EQ(held.rest, "sto");
  EXPECT_EQ(held.text, "sto");
}

TEST(StopText, CharactersAreWhole) {
  const Pieces whole = push_all({},
                                "a\xC3\xA9"
                                "b");
  EXPECT_EQ(whole.pieces, (std::vector<std::string>{"a", "", "\xC3\xA9", "b"}));
}

TEST(StopText, StopStringsOfThePromptDoNotCount) {
  const auto tokenizer = make_null_tokenizer(100);
  const std::vector<std::string> stops = {"7 8"};
  StopText text(*tokenizer, stops, std::vector<TokenId>{7, 8, 7});
  std::string all = text.push(9);
  all += text.push(7);
  EXPECT_FALSE(text.stopped());
  all += text.push(8);
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(all, " 9 ");
}

TEST(StopText, TokensThatTheTokenizerLacksHaveNoText) {
  const auto tokenizer = make_null_tokenizer(10);
  StopText text(*tokenizer, {}, std::vector<TokenId>{1, 40});
  EXPECT_EQ(text.push(50), "");
  EXPECT_EQ(text.push(5), " 5");
}

}  // namespace
}  // namespace bloomery
