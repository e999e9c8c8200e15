#include "corpus/corpus_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "corpus/indexed_corpus.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

const CorpusTokenizer kOne{"one", 10, "0123456789abcdef"}, kOther{"other", 10, "fedcba9876543210"};

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class CorpusTokenizerTest : public ::testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  fs::path write(const std::string& name, std::optional<CorpusTokenizer> tokenizer,
                 std::vector<TokenId> ids = {1, 2, 3}) const {
    IndexedWriter writer(at(name), TokenType::u16);
    writer.add_sequence(ids);
    writer.end_document();
    if (tokenizer) writer.set_tokenizer(*tokenizer);
    writer.commit();
    return at(name);
  }

  TemporaryFolder folder_;
};

TEST_F(CorpusTokenizerTest, TheNoteGoesWithItsCorpus) {
  EXPECT_FALSE(read_corpus_tokenizer(write("a", {})));
  const fs::path prefix = write("a", kOne);
  ASSERT_TRUE(read_corpus_tokenizer(prefix));
  EXPECT_TRUE(read_corpus_tokenizer(prefix)->same_ids(kOne));
  EXPECT_EQ(read_corpus_tokenizer(prefix)->name, "one");
  write("a", {});
  EXPECT_FALSE(fs::exists(tokenizer_note_path(prefix)));
}

// The pair is replaced by a program that knows of no note.
TEST_F(CorpusTokenizerTest, ANoteOfAnotherCorpusDoesNotCount) {
  const fs::path prefix = write("a", kOne), other = write("b", {}, {1, 2, 3, 4});
  for (const auto& [from, to] :
       {std::pair{bin_path(other), bin_path(prefix)}, {idx_path(other), idx_path(prefix)}}) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  }
  EXPECT_FALSE(read_corpus_tokenizer(prefix));
}

TEST_F(CorpusTokenizerTest, ANoteThatCannotBeReplacedLeavesTheOldCorpus) {
  const fs::path prefix = write("a", {});
  fs::create_directories(tokenizer_note_path(prefix) / "in the way");
  EXPECT_ANY_THROW(write("a", kOne, {1, 2, 3, 4, 5}));
  ASSERT_TRUE(fs::exists(idx_path(prefix)));
  EXPECT_EQ(IndexedCorpus(prefix).num_tokens(), 3);
}

TEST_F(CorpusTokenizerTest, ADamagedNoteIsNamed) {
  const fs::path prefix = write("a", kOne);
  write_file(tokenizer_note_path(prefix), "{\"tokenizer\": 1}");
  EXPECT_NE(error_of([&] { read_corpus_tokenizer(prefix); }).find("a.tokenizer.json"),
            std::string::npos);
}

TEST_F(CorpusTokenizerTest, WhatSeveralHaveInCommon) {
  const fs::path a = write("a", kOne), b = write("b", kOne), without = write("c", {}),
                 other = write("d", kOther);
  EXPECT_EQ(common_tokenizer({a, b}, false)->hash, kOne.hash);
  EXPECT_FALSE(common_tokenizer({a, without}, false));
  const std::string error = error_of([&] { common_tokenizer({a, without, other}, false); });
  for (const std::string& part :
       {a.string(), other.string(), std::string("one"), std::string("other"),
        std::string("--allow-tokenizer-mismatch")}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  EXPECT_FALSE(common_tokenizer({a, other}, true));
}

TEST_F(CorpusTokenizerTest, IsComparedWithARunsTokenizer) {
  const fs::path folder = fs::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/tokenizers";
  const auto bert = [&](std::int64_t extra_ids) {
    TokenizerOptions options{.type = "BertWordPieceLowerCase", .vocab_extra_ids = extra_ids};
    options.vocab_file = folder / "bert/vocab.txt";
    return load_tokenizer(options);
  };
  TokenizerOptions llama;
  llama.path = folder / "llama3";
  const std::string prefix = write("a", corpus_tokenizer(*bert(0), "bert/vocab.txt"));
  EXPECT_EQ(error_of([&] { require_corpus_tokenizer({prefix}, *bert(0), "mine"); }), "");
  EXPECT_EQ(error_of([&] { require_corpus_tokenizer({prefix}, *bert(10), "mine"); }), "");
  EXPECT_EQ(
      error_of([&] { require_corpus_tokenizer({write("b", {})}, *load_tokenizer(llama), "mine"); }),
      "");
  const std::string error =
      error_of([&] { require_corpus_tokenizer({prefix}, *load_tokenizer(llama), "mine"); });
  for (const std::string& part : {prefix, std::string("bert/vocab.txt"), std::string("mine"),
                                  std::string("--allow-tokenizer-mismatch")}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace bloomery
