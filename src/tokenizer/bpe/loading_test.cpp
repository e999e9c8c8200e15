// GPT-2 and tiktoken files that are small, odd or wrong.
#include <gtest/gtest.h>

#include "base/error.h"
#include "harness/shared_data.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/bpe/tiktoken.h"

namespace bloomery {
namespace {

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_mentions(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << message << " does not mention " << word;
  }
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder()->encode(text, ids);
  return ids;
}

class Gpt2Files : public testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> load(const std::string& vocab, const std::string& merges) const {
    return load_gpt2(folder_.file("vocab.json", vocab), folder_.file("merges.txt", merges));
  }
  std::string error(const std::string& vocab, const std::string& merges) const {
    return error_of([&] { load(vocab, merges); });
  }
  TemporaryFolder folder_;
};

TEST_F(Gpt2Files, FirstLineAndWhatFollowsTheLastNewlineAreLeftOut) {
  const std::string vocab = R"({"!": 0, "a": 1, "b": 2, "ab": 3, "ba": 4})";
  EXPECT_EQ(encoded(*load(vocab, "#version: 0.2\na b\nb a\n"), "abba"),
            (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(encoded(*load(vocab, "#version: 0.2\r\na b\r\n\r\nb a"), "abba"),
            (std::vector<TokenId>{3, 2, 1}));
  EXPECT_EQ(encoded(*load(vocab, "a b\nb a\n"), "aba"), (std::vector<TokenId>{1, 4}));
}

TEST_F(Gpt2Files, ALaterLineOfTheSamePairCounts) {
  const std::string vocab = R"({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4})";
  EXPECT_EQ(encoded(*load(vocab, "#\na b\nb c\na b\n"), "abc"), (std::vector<TokenId>{0, 4}));
}

TEST_F(Gpt2Files, UnknownBytesAreIdZero) {
  const auto tokenizer = load(R"({"a": 5, "!": 0, "<|endoftext|>": 7})", "#version\n");
  EXPECT_EQ(encoded(*tokenizer, "ax"), (std::vector<TokenId>{5, 0}));
  EXPECT_EQ(tokenizer->special().eod, 7);
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->piece(6), "");
  EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{6}), Error);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{5, 7}), "a<|endoftext|>");
}

TEST_F(Gpt2Files, AnEmptyTokenHasAnIdAndNoText) {
  const auto tokenizer = load(R"({"a": 0, "": 5})", "#version\n");
  EXPECT_EQ(tokenizer->vocab_size(), 6);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{0, 5, 0}), "aa");
  EXPECT_EQ(encoded(*load(R"({"": 5})", "#version\n"), "x"), (std::vector<TokenId>{0}));
}

TEST_F(Gpt2Files, TheEndOfTextIsRecognisedUnlessItIsToBeText) {
  const auto tokenizer = load(R"({"a": 5, "!": 0, "<|endoftext|>": 7})", "#version\n");
  EXPECT_EQ(encoded(*tokenizer, "a<|endoftext|>a"), (std::vector<TokenId>{5, 7, 5}));
  std::vector<TokenId> ids;
  tokenizer->make_encoder({.parse_special = false})->encode("<|endoftext|>", ids);
  EXPECT_EQ(ids.size(), 13u);
}

TEST_F(Gpt2Files, TokensOutsideTheAlphabetStandForThemselves) {
  const auto tokenizer = load(R"({"a": 0, "x y": 1, "中": 2})", "#version\n");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{0, 1, 2}), "ax y中");
  EXPECT_EQ(tokenizer->find("x y"), 1);
}

TEST_F(Gpt2Files, Errors) {
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2})";
  expect_mentions(error_of([&] { load_gpt2(folder_.file("v", vocab), ""); }), {"--merge-file"});
  expect_mentions(error("{\"a\": 0", "#\n"), {"vocab.json", "JSON"});
  expect_mentions(error("[1]", "#\n"), {"vocab.json", "object"});
  expect_mentions(error(R"({"a": "0"})", "#\n"), {"vocab.json", "'a'", "integer"});
  expect_mentions(error(R"({"a": -1})", "#\n"), {"'a'", "-1"});
  expect_mentions(error(R"({"a": 18446744073709551615})", "#\n"), {"'a'"});
  expect_mentions(error(R"({"a": 2000000000})", "#\n"), {"'a'", "2000000000"});
  expect_mentions(error(R"({"a": 1, "b": 1})", "#\n"), {"'a'", "'b'", "id 1"});
  expect_mentions(error(vocab, "#\na b\na c\n"), {"merges.txt", "line 3", "'c'", "vocabulary"});
  expect_mentions(error(vocab, "#\nb a\n"), {"line 2", "'ba'"});
  expect_mentions(error(vocab, "#\nab\n"), {"line 2", "'ab'"});
  expect_mentions(error(vocab, "#\na b c\n"), {"line 2"});
  EXPECT_THROW(load_gpt2("/nonexistent/vocab.json", "/nonexistent/merges.txt"), Error);
}

TEST(ByteAlphabet, EveryByteComesBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  EXPECT_EQ(unspell_bytes(spell_bytes(bytes)), bytes);
  EXPECT_EQ(spell_bytes(" \n"), "\u0120\u010A");
  EXPECT_EQ(unspell_bytes("a b"), std::nullopt);
  EXPECT_EQ(unspell_bytes("\u0144"), std::nullopt);
}

std::string base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (int shift = 18; shift >= 0; shift -= 6) text.push_back(kLetters[bits >> shift & 63]);
    if (at + 1 >= bytes.size())
      text.replace(text.size() - 2, 2, "==");
    else if (at + 2 >= bytes.size())
      text.back() = '=';
  }
  return text;
}

std::string ranks(const std::vector<std::string>& more) {
  std::string file;
  for (int byte = 0; byte < 256; ++byte) {
    file += concat(base64({std::string(1, static_cast<char>(byte))}), " ", byte, "\n");
  }
  for (std::size_t i = 0; i < more.size(); ++i) file += concat(base64(more[i]), " ", 256 + i, "\n");
  return file;
}

TEST(TiktokenFiles, MergeByTheRankOfTheWhole) {
  const TemporaryFolder folder;
  // "abcd" is made of "ab" and "cd" only; "xyz" cannot be reached and counts as a whole piece.
  const auto path = folder.file("r", ranks({"bc", "ab", "cd", "abcd", "xyz"}));
  const auto tokenizer = load_tiktoken(path, "gpt2");
  EXPECT_EQ(encoded(*tokenizer, "abcd"), (std::vector<TokenId>{259}));
  EXPECT_EQ(encoded(*tokenizer, "abcde"), (std::vector<TokenId>{'a', 256, 'd', 'e'}));
  EXPECT_EQ(encoded(*tokenizer, "xyz"), (std::vector<TokenId>{260}));
  EXPECT_EQ(encoded(*tokenizer, "xyzx"), (std::vector<TokenId>{'x', 'y', 'z', 'x'}));
  EXPECT_EQ(tokenizer->piece(259), "abcd");
  EXPECT_EQ(tokenizer->find("abcd"), 259);
  const std::string word(2000, 'a');  // the length of a token has no bound
  EXPECT_EQ(encoded(*load_tiktoken(folder.file("r", ranks({word})), "gpt2"), word),
            (std::vector<TokenId>{256}));
}

TEST(TiktokenFiles, Errors) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& file, const std::string& pattern) {
    return error_of([&] { load_tiktoken(folder.file("r", file), pattern); });
  };
  expect_mentions(error(ranks({"ab"}), ""), {"257", "--pattern", "cl100k", "o200k"});
  expect_mentions(error(ranks({}), "cl99k"), {"--pattern", "cl99k", "cl100k"});
  expect_mentions(error(ranks({}) + "YWI= x\n", "gpt2"), {"line 257"});
  expect_mentions(error(ranks({}) + "YW* 300\n", "gpt2"), {"line 257"});
  expect_mentions(error(ranks({}) + "YWI= 5\n", "gpt2"), {"id 5"});
  expect_mentions(error(ranks({}) + "YWI= -5\n", "gpt2"), {"line 257"});
  expect_mentions(error(ranks({"ab", "ab"}), "gpt2"), {"'ab' twice"});
  expect_mentions(error("YQ== 0\n", "gpt2"), {"byte 0"});
  expect_mentions(error("", "gpt2"), {"no ranks"});
  EXPECT_TRUE(looks_like_tiktoken("IQ== 0\nIg== 1\n"));
  EXPECT_FALSE(looks_like_tiktoken("{\"version\": \"1.0\"}"));
  EXPECT_FALSE(looks_like_tiktoken("[PAD]\n[unused0]\n"));
}

}  // namespace
}  // namespace bloomery
