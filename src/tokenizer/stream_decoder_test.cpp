#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "harness/shared_data.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

using nlohmann::json;

// A vocabulary with what makes decoding depend on neighbours: bytes of characters, marks of words,
// an empty token.
json vocabulary() {
  json vocab;
  int id = 0;
  for (const char* token :
       {"\u2581the", "\u2581", "a",       "##b",    "<0x41>", "<0xC3>", "<0xA9>", "<0xE2>",
        "<0x82>",    "<0xAC>", "\u0120x", "\u00C3", "\u00A9", "\u00E2", "\u0124", "\u00AC",
        ".",         "n't",    "c</w>",   "<pad>",  "|",      "\uFFFD", ""}) {
    vocab[token] = id++;
  }
  return vocab;
}

void expect_stream_is_decode(const Tokenizer& tokenizer, std::mt19937& random) {
  StreamDecoder stream(tokenizer);
  for (int round = 0; round < 200; ++round) {
    std::vector<TokenId> ids(random() % 40);
    std::string joined;
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer.vocab_size()));
      const std::string added = stream.push(id);
      EXPECT_TRUE(is_utf8(added));
      joined += added;
    }
    joined += stream.finish();
    ASSERT_EQ(joined, tokenizer.decode(ids)) << json(ids);
  }
}

TEST(StreamDecoder, TheJoinedTextIsThatOfDecodeForEveryDecoder) {
  std::mt19937 random(3);
  std::istringstream lines(golden_file("hf_tokenizers.jsonl"));
  int decoders = 0;
  for (std::string line; std::getline(lines, line);) {
    json config = json::parse(line);
    if (!config.contains("name") || !config["name"].get<std::string>().starts_with("decoder")) {
      continue;
    }
    SCOPED_TRACE(config["name"].get<std::string>());
    config["tokenizer"]["model"]["vocab"] = vocabulary();
    expect_stream_is_decode(*read_hf_tokenizer(config["tokenizer"].dump(), "test"), random);
    ++decoders;
  }
  EXPECT_GT(decoders, 10);
}

std::shared_ptr<const Tokenizer> byte_level() {
  const json config = {
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary()}, {"unk_token", "a"}}}};
  return read_hf_tokenizer(config.dump(), "test");
}

TEST(StreamDecoder, ACharacterWaitsForItsLastByte) {
  const auto tokenizer = byte_level();
  StreamDecoder stream(*tokenizer);
  EXPECT_EQ(stream.push(*tokenizer->find("a")), "a");
  EXPECT_EQ(stream.push(*tokenizer->find("\u00E2")), "");
  EXPECT_EQ(stream.push(*tokenizer->find("\u0124")), "");
  EXPECT_EQ(stream.push(*tokenizer->find("\u00AC")), "\u20AC");
  EXPECT_EQ(stream.push(*tokenizer->find("\u0120x")), " x");
  EXPECT_EQ(stream.push(*tokenizer->find("\u00C3")), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

// <0xF0> <0x9F> <0x98> <0x80> and its like, as Llama-2 has them.
std::shared_ptr<const Tokenizer> byte_fallback() {
  json vocab = {{"like", 0}, {"\u2581I", 1}, {"\u2581", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[byte_piece(byte)] = byte + 3;
  const json config = {
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}}}}}},
      {"model",
       {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}, {"byte_fallback", true}}}};
  return read_hf_tokenizer(config.dump(), "test");
}

// What is said behind the prompt.
std::string said(const Tokenizer& tokenizer, const std::vector<TokenId>& prompt,
                 const std::vector<TokenId>& ids) {
  StreamDecoder stream(tokenizer, prompt);
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  return text + stream.finish();
}

TEST(StreamDecoder, ThePromptIsNotSaidAgain) {
  const auto tokenizer = byte_fallback();
  const TokenId a = 0xF0 + 3, b = 0x9F + 3, c = 0x99 + 3, d = 0x82 + 3;  // U+1F642
  const std::vector<TokenId> prompt = {1, 0, 2, a, b, c, d};
  EXPECT_EQ(said(*tokenizer, prompt, {a, b, c, d, 2, 0}), "\U0001F642 like");
  EXPECT_EQ(said(*tokenizer, prompt, {a}), "\uFFFD") << "and not the prompt's bytes, too";
  EXPECT_EQ(said(*tokenizer, prompt, {a, 2, 0}), "\uFFFD like");
  EXPECT_EQ(said(*tokenizer, {1, a, b}, {c, d, 0}), "\U0001F642like")
      << "a prompt that ends inside of a character, which belongs to what follows";
}

TEST(StreamDecoder, ALongPromptDoesNotHoldAnAnswerBack) {
  const auto tokenizer = byte_fallback();
  const std::vector<TokenId> prompt(1000, 0);
  StreamDecoder stream(*tokenizer, prompt);
  for (const TokenId id : {0xF0 + 3, 0x9F + 3, 0x99 + 3, 0x82 + 3}) EXPECT_EQ(stream.push(id), "");
  EXPECT_EQ(stream.push(0), "\U0001F642like");
}

// 100,000 bytes that begin a character and never end one.
TEST(StreamDecoder, BytesThatNeverBecomeTextTakeLittleTime) {
  const auto tokenizer = byte_level();
  StreamDecoder stream(*tokenizer);
  std::string joined;
  for (int i = 0; i < 100000; ++i) joined += stream.push(*tokenizer->find("\u00C3"));
  joined += stream.finish();
  EXPECT_EQ(joined.size(), 300000u);
}

}  // namespace
}  // namespace bloomery
