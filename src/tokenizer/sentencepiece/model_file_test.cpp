#include "tokenizer/sentencepiece/model_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "base/error.h"
#include "harness/token_vectors.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/sentencepiece/charsmap.h"
#include "tokenizer/sentencepiece/sentencepiece.h"

namespace bloomery {
namespace {

std::string varint(std::size_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes.push_back(static_cast<char>((value & 127) | 128));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
std::string field(std::size_t number, const std::string& message) {
  return varint(number << 3 | 2) + varint(message.size()) + message;
}
std::string flag(std::size_t number, std::size_t value) {
  return varint(number << 3) + varint(value);
}
std::string piece(const std::string& text, float score, PieceType type) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &score, 4);
  return field(1, field(1, text) + '\x15' + bytes + flag(3, static_cast<std::size_t>(type)));
}

constexpr std::size_t kBpe = 2;

std::string small_model() {
  return piece("<unk>", 0, PieceType::unknown) + piece("<s>", 0, PieceType::control) +
         piece("</s>", 0, PieceType::control) + piece("\u2581", -3, PieceType::normal) +
         piece("a", -4, PieceType::normal) + piece("b", -5, PieceType::normal) +
         piece("ab", -1, PieceType::normal) + piece("\u2581ab", -2, PieceType::normal) +
         field(2, flag(3, kBpe)) + field(3, flag(4, 0));
}

std::string message_of(const std::string& bytes) {
  try {
    parse_sentencepiece(bytes, "small.model");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SentencePieceFile, ReadsPiecesAndOptions) {
  const SentencePieceFile file = parse_sentencepiece(small_model(), "small.model");
  ASSERT_EQ(file.pieces.size(), 8U);
  EXPECT_EQ(file.pieces[6].text, "ab");
  EXPECT_EQ(file.pieces[6].score, -1.0F);
  EXPECT_EQ(file.pieces[1].type, PieceType::control);
  EXPECT_EQ(file.algorithm, SentencePieceAlgorithm::bpe);
  EXPECT_TRUE(file.normalization.add_dummy_prefix);
  EXPECT_FALSE(file.normalization.remove_extra_whitespaces);
  EXPECT_EQ(file.unknown_surface, " \u2047 ");
  EXPECT_TRUE(looks_like_sentencepiece(small_model()));
}

TEST(SentencePieceFile, IsToldFromOtherFiles) {
  EXPECT_FALSE(looks_like_sentencepiece(""));
  EXPECT_FALSE(looks_like_sentencepiece("[PAD]\n[UNK]\nthe\n"));
  EXPECT_FALSE(looks_like_sentencepiece("\n\n\n\n"));
  EXPECT_FALSE(looks_like_sentencepiece("{\"model\": {}}"));
  EXPECT_FALSE(looks_like_sentencepiece(small_model().substr(0, 40)));
}

TEST(SentencePieceFile, SaysWhatIsWrong) {
  const std::string unknown = piece("<unk>", 0, PieceType::unknown);
  const auto says = [](const std::string& bytes, const std::string& words) {
    EXPECT_NE(message_of(bytes).find(words), std::string::npos) << message_of(bytes);
  };
  says("", "no pieces");
  says(piece("a", 0, PieceType::normal), "0 unknown pieces");
  says(unknown + piece("<u>", 0, PieceType::unknown), "2 unknown pieces");
  says(unknown + piece("", 0, PieceType::normal), "piece 1 is empty");
  says(unknown + piece("\xFF", 0, PieceType::normal), "piece 1 is not valid UTF-8");
  says(unknown + piece("a", 0, PieceType::normal) + piece("a", 0, PieceType::unused),
       "piece 2 (\"a\") is there twice");
  says(unknown + piece(std::string(1025, 'a'), 0, PieceType::normal), "has 1025 bytes");
  says(unknown + piece("a", std::numeric_limits<float>::quiet_NaN(), PieceType::normal), "finite");
  says(unknown + piece("a", 0, static_cast<PieceType>(7)), "type 7");
  says(unknown + piece("<0x41>", 0, PieceType::byte), "without byte fallback");
  says(unknown + field(2, flag(35, 1)), "256 byte pieces; 0 are there");
  says(unknown + field(2, flag(3, 9)), "model type 9");
  says(unknown + "\x0A\x7F", "a field of 127 bytes where 0 are left");
  says(unknown + "\x0B", "tag 11");
  EXPECT_NE(message_of(unknown + field(2, flag(3, 9))).find("small.model"), std::string::npos);
}

TEST(Charsmap, ChecksItsTable) {
  EXPECT_TRUE(Charsmap("", "small.model").empty());
  EXPECT_THROW(Charsmap("abc", "small.model"), Error);
  EXPECT_THROW(Charsmap(std::string("\x08\0\0\0abcd", 8), "small.model"), Error);
  EXPECT_THROW(Charsmap(std::string("\x03\0\0\0abcdefg", 11), "small.model"), Error);
}

// Whatever the bytes, reading ends in an Error or in a tokenizer that works.
TEST(SentencePieceFile, DamageDoesNoHarm) {
  std::mt19937 random(11);
  // A trie of zeros except for what the random bytes below make of it.
  const std::string charsmap = std::string("\x40\0\0\0", 4) + std::string(64, '\1') + "x\0";
  const std::string whole = small_model() + field(3, field(2, charsmap));
  int loaded = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    for (std::size_t i = random() % 4; i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    try {
      const auto tokenizer =
          parse_sentencepiece_tokenizer(bytes, "damaged", SentencePieceKind::plain);
      const auto ids = encoded(*tokenizer, "ab ba\u00E9\t\u2581 abab \U0001F600");
      tokenizer->decode(ids);
      ++loaded;
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_GT(loaded, 100);
}

TEST(SentencePieceTokenizer, JoinsByScoreAndKeepsUnknownRunsTogether) {
  const auto tokenizer =
      parse_sentencepiece_tokenizer(small_model(), "small", SentencePieceKind::plain);
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(encoded(*tokenizer, "ab aab"), (Ids{7, 3, 4, 6}));
  EXPECT_EQ(encoded(*tokenizer, "aéxyab"), (Ids{3, 4, 0, 6}));
  EXPECT_EQ(encoded(*tokenizer, ""), Ids{});
  EXPECT_EQ(encoded(*tokenizer, "ab", {.add_special_tokens = true}), (Ids{1, 7}));
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->find("ab"), 6);
  EXPECT_EQ(tokenizer->find("abc"), std::nullopt);
  EXPECT_EQ(tokenizer->piece(7), "\u2581ab");
  EXPECT_EQ(tokenizer->piece(8), "");
  EXPECT_THROW(tokenizer->decode(Ids{8}), Error);
  EXPECT_THROW(tokenizer->decode(Ids{-1}), Error);
}

// Megatron's SentencePieceTokenizer: further tokens, recognised in the text.
TEST(MegatronSentencePiece, AddsItsTokensAndRecognisesThem) {
  using Ids = std::vector<TokenId>;
  const auto tokenizer =
      parse_sentencepiece_tokenizer(small_model(), "small", SentencePieceKind::megatron, 2);
  // <CLS> <SEP> <EOD> <MASK> <PAD> are new, <s> and </s> are the model's, then the extra ids.
  EXPECT_EQ(tokenizer->vocab_size(), 8 + 5 + 2);
  const SpecialTokens& special = tokenizer->special();
  EXPECT_EQ(special.cls, 8);
  EXPECT_EQ(special.sep, 9);
  EXPECT_EQ(special.eod, 10);
  EXPECT_EQ(special.mask, 11);
  EXPECT_EQ(special.pad, 12);
  EXPECT_EQ(special.bos, 1);
  EXPECT_EQ(special.eos, 2);
  EXPECT_EQ(tokenizer->find("<extra_id_1>"), 14);
  EXPECT_EQ(tokenizer->piece(14), "<extra_id_1>");
  // Each part between them is encoded, and has its leading space, by itself.
  EXPECT_EQ(encoded(*tokenizer, "ab<EOD>ab</s><extra_id_0>"), (Ids{7, 10, 7, 2, 13}));
  EXPECT_EQ(tokenizer->decode(Ids{7, 10, 7, 2, 13}), "ab <EOD> ab </s>  <extra_id_0> ");
  const Ids plain = encoded(*tokenizer, "<EOD>", {.parse_special = false});
  EXPECT_EQ(plain, (Ids{3, 0}));
  EXPECT_THROW(tokenizer->decode(Ids{15}), Error);
  EXPECT_THROW(
      parse_sentencepiece_tokenizer(small_model(), "small", SentencePieceKind::megatron, -1),
      Error);
}

}  // namespace
}  // namespace bloomery
