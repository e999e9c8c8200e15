#include "tokenizer/wordpiece/wordpiece.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "harness/token_vectors.h"
#include "tokenizer/wordpiece/bert_text.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const Tokenizer> bert(const std::string& name,
                                      const WordPieceOptions& options = {}) {
  const auto path = shared_data("tokenizers/bert/" + name);
  return path ? load_wordpiece(*path, options) : nullptr;
}

std::vector<std::string> words_of(std::string_view text, const BertTextOptions& options = {}) {
  std::vector<std::string> words;
  BertWordSplitter(options).split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

using Words = std::vector<std::string>;

TEST(BertText, MakesWords) {
  EXPECT_EQ(words_of("Hello, World!"), (Words{"hello", ",", "world", "!"}));
  EXPECT_EQ(words_of("  \t\n "), Words{});
  EXPECT_EQ(words_of("a\u0001b\u200Bc\uFFFDd"), (Words{"abcd"}));  // controls and formats go
  EXPECT_EQ(words_of("x中文y"), (Words{"x", "中", "文", "y"}));
  EXPECT_EQ(words_of("ÀÉî İ"), (Words{"aei", "i"}));
  EXPECT_EQ(words_of("한"), (Words{"\u1112\u1161\u11AB"}));  // decomposed
  EXPECT_EQ(words_of("a\u037Eb"), (Words{"a", ";", "b"}));   // becomes punctuation
}

TEST(BertText, EachStepCanBeLeftOut) {
  EXPECT_EQ(words_of("ÀB c", {.strip_accents = false, .lowercase = false}), (Words{"ÀB", "c"}));
  EXPECT_EQ(words_of("ÀB", {.lowercase = false}), (Words{"AB"}));
  EXPECT_EQ(words_of("ÀB", {.strip_accents = false}), (Words{"àb"}));
  EXPECT_EQ(words_of("x中", {.set_ideographs_apart = false}), (Words{"x中"}));
  EXPECT_EQ(words_of("a\u0001b", {.clean_text = false}), (Words{"a\u0001b"}));
}

// U+302E and U+1D16D stay, and ordering puts the one of the lower class first.
TEST(BertText, OrdersTheMarksThatStay) {
  EXPECT_EQ(words_of("x y\U0001D16D\u302Ez w"), (Words{"x", "y\u302E\U0001D16Dz", "w"}));
}

TEST(WordPiece, KnowsItsFile) {
  const auto lower = parse_wordpiece("[PAD]\r\n[UNK] \na\n##b\na\n", "vocab.txt");
  EXPECT_EQ(lower->vocab_size(), 5);
  EXPECT_EQ(encoded(*lower, "AB x"), (Ids{4, 3, 1}));  // the later of two equal lines
  const auto cased = parse_wordpiece("[UNK]\nA\na\n", "vocab.txt");
  EXPECT_EQ(encoded(*cased, "A a"), (Ids{1, 2}));
  EXPECT_THROW(parse_wordpiece("a\nb\n", "vocab.txt"), Error);
  EXPECT_THROW(parse_wordpiece("[UNK]\n\xFF\n", "vocab.txt"), Error);
  EXPECT_THROW(lower->decode(Ids{5}), Error);
}

TEST(WordPiece, SpecialTokensInTheText) {
  const auto tokenizer = parse_wordpiece("[UNK]\n[CLS]\n[SEP]\n[\n]\ncl\n##s\nx\n", "vocab.txt");
  EXPECT_EQ(encoded(*tokenizer, "x[CLS]x"), (Ids{7, 1, 7}));
  EXPECT_EQ(encoded(*tokenizer, "[CLS [cls] [[SEP]"), (Ids{3, 5, 6, 3, 5, 6, 4, 3, 2}));
  EXPECT_EQ(encoded(*tokenizer, "[CLS]", {.parse_special = false}), (Ids{3, 5, 6, 4}));
  EXPECT_EQ(encoded(*tokenizer, "x", {.add_special_tokens = true}), (Ids{1, 7, 2}));
}

TEST(WordPiece, MegatronsTypes) {
  const std::string file = "[UNK]\n[CLS]\n[SEP]\na\n##a\n";
  const auto tokenizer = parse_wordpiece(file, "vocab.txt", megatron_wordpiece(true, 2));
  EXPECT_EQ(tokenizer->vocab_size(), 5 + 4);
  EXPECT_EQ(tokenizer->special().bos, 5);
  EXPECT_EQ(tokenizer->special().eos, 6);
  EXPECT_EQ(tokenizer->find("<extra_id_1>"), 8);
  EXPECT_EQ(encoded(*tokenizer, "a<extra_id_0>A"), (Ids{3, 7, 3}));
  const std::string longer(101, 'a');
  EXPECT_EQ(encoded(*tokenizer, longer).size(), 101U);
  EXPECT_EQ(encoded(*parse_wordpiece(file, "vocab.txt"), longer), (Ids{0}));
  EXPECT_EQ(encoded(*tokenizer, longer + longer), (Ids{0}));
}

TEST(WordPieceGolden, LlamaCppVectors) {
  const auto tokenizer = bert("bert-base-uncased-vocab.txt");
  if (!tokenizer) GTEST_SKIP() << kNoSharedData;
  for (const auto& [text, ids] : llama_cpp_vectors("bert-bge")) {
    EXPECT_EQ(encoded(*tokenizer, text), ids) << text;
  }
}

TEST(WordPieceGolden, SquadQuestions) {
  const auto tokenizer = bert("bert-base-uncased-vocab.txt");
  if (!tokenizer) GTEST_SKIP() << kNoSharedData;
  const auto read = [](const std::string& name) {
    return nlohmann::json::parse(
        read_xz(*shared_data("tokenizers/golden/swift-transformers/" + name)));
  };
  const auto questions = read("bert_question_tokens.json.xz");
  const auto ids = read("bert_question_ids.json.xz");
  ASSERT_EQ(questions.size(), 10570U);
  ASSERT_EQ(ids.size(), questions.size());
  const auto encoder = tokenizer->make_encoder();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Ids found;
    encoder->encode(questions[i].at("original").get<std::string>(), found);
    ASSERT_EQ(found, ids[i].get<Ids>()) << questions[i].at("original");
  }
}

TEST(WordPieceGolden, ManyLanguages) {
  const auto path = shared_data("tokenizers/golden/derived/multilingual.jsonl.xz");
  if (!path) GTEST_SKIP() << kNoSharedData;
  const auto uncased = bert("bert-base-uncased-vocab.txt");
  const auto cased = bert("bert-large-cased-vocab.txt");
  std::istringstream lines(read_xz(*path));
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    const std::string text = entry.at("text");
    EXPECT_EQ(encoded(*uncased, text), entry.at("ids").at("bert-base-uncased").get<Ids>()) << text;
    EXPECT_EQ(encoded(*cased, text), entry.at("ids").at("bert-large-cased").get<Ids>()) << text;
  }
}

TEST(WordPieceGolden, DecodingTakesOutTheSpacesOfEnglish) {
  const auto tokenizer = bert("bert-base-uncased-vocab.txt");
  if (!tokenizer) GTEST_SKIP() << kNoSharedData;
  const Ids ids = encoded(*tokenizer, "Hello, world! Unaffable?", {.add_special_tokens = true});
  EXPECT_EQ(tokenizer->decode(ids), "[CLS] hello, world! unaffable? [SEP]");
}

}  // namespace
}  // namespace bloomery
