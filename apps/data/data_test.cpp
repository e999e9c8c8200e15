#include "apps/data/data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/common/command_case.h"
#include "base/error.h"
#include "base/file.h"
#include "corpus/indexed_corpus.h"

namespace bloomery {
namespace {

class DataCommandTest : public ::testing::Test {
 protected:
  DataCommandTest() { std::filesystem::create_directory(folder_); }
  ~DataCommandTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Runs `bloomery ARGUMENTS`, expects the exit code and returns output and errors.
  std::string run(const Arguments& arguments, int code = 0) {
    return expect_command(arguments, code);
  }

  // Documents of 1, 2, ... tokens; token k of document d is d.
  void write(const std::string& name, int documents, TokenType type = TokenType::u16,
             const std::string& tokenizer = "") {
    IndexedWriter writer(path(name), type);
    if (!tokenizer.empty()) {
      writer.set_tokenizer({.name = tokenizer, .tokens = 100, .hash = "hash of " + tokenizer});
    }
    for (int i = 0; i < documents; ++i) {
      writer.add_sequence(std::vector<TokenId>(static_cast<std::size_t>(i + 1), i));
      writer.end_document();
    }
    writer.commit();
  }

  void expect_same(const std::string& a, const std::string& b) {
    for (const char* ending : {".bin", ".idx"}) {
      EXPECT_EQ(read_file(path(a) + ending), read_file(path(b) + ending)) << a << ending;
    }
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / concat("bloomery_data_command_test_", getpid());
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(DataCommandTest, InspectAsJson) {
  write("a", 40);
  const auto all =
      nlohmann::json::parse(run({"data", "inspect", path("a"), "--json", "--top", "2"}));
  EXPECT_EQ(all["format"], "mmap");
  EXPECT_EQ(all["dtype"], "uint16");
  EXPECT_EQ(all["documents"], 40);
  EXPECT_EQ(all["tokens"], 820);
  EXPECT_EQ(all["uncounted_tokens"], 0);
  EXPECT_EQ(all["distinct_tokens"], 40);
  EXPECT_EQ(all["largest_token"], 39);
  EXPECT_EQ(all["document_lengths"]["longest"], 40);
  EXPECT_EQ(all["document_lengths"]["histogram"].size(), 6u);
  EXPECT_EQ(all["frequent_tokens"][0]["id"], 39);
  EXPECT_EQ(all["frequent_tokens"][0]["count"], 40);
  ASSERT_EQ(all["samples"].size(), 3u);
  EXPECT_EQ(all["samples"][1]["ids"], std::vector<int>(14, 13));
}

TEST_F(DataCommandTest, InspectAsAPage) {
  write("a", 40);
  const std::string page = run({"data", "inspect", path("a.bin")});
  EXPECT_TRUE(contains(page, "mmap, uint16")) << page;
  EXPECT_TRUE(contains(page, "32 - 63")) << page;
  EXPECT_TRUE(contains(page, "most frequent of 40 distinct tokens")) << page;
}

TEST_F(DataCommandTest, VerifyAcceptsGoodAndNamesBad) {
  write("a", 40);
  write("b", 3);
  EXPECT_TRUE(contains(run({"data", "verify", path("a")}), "good"));
  EXPECT_TRUE(contains(run({"data", "verify", folder_.string(), "--vocab-size", "40"}),
                       "all ids below 40"));
  const std::string stray = run({"data", "verify", path("a"), "--vocab-size", "39"}, 2);
  EXPECT_TRUE(contains(stray, "token 780 (sequence 39) is 39, not below 39")) << stray;
  std::filesystem::resize_file(path("a.bin"), 100);
  EXPECT_TRUE(contains(run({"data", "verify", path("a")}, 2), "shorter than the index says"));
  std::filesystem::resize_file(path("a.idx"), 100);
  EXPECT_TRUE(contains(run({"data", "verify", path("a")}, 2), "is cut short"));
  EXPECT_TRUE(contains(run({"data", "verify", path("no")}, 2), "no.idx: No such file"));
  EXPECT_TRUE(contains(run({"data", "verify"}, 2), "--input"));
}

TEST_F(DataCommandTest, VerifyWarnsOfUncountedEndsOfDocuments) {
  write("a", 3);
  std::ofstream(path("a.bin"), std::ios::binary)
      << std::string("\0\0\x09\0\1\0\1\0\x09\0\2\0\2\0\2\0\x09\0", 18);
  testing::internal::CaptureStderr();
  run({"data", "verify", path("a")});
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(warning, "do not count the end-of-document tokens (id 9), 3 in all"))
      << warning;
  run({"data", "merge", path("a"), "--output-prefix", path("b"), "--count-eod"});
  EXPECT_EQ(read_file(path("a.bin")), read_file(path("b.bin")));
  EXPECT_EQ(IndexedCorpus(path("b")).length(0), 2);
  std::filesystem::resize_file(path("a.bin"), 16);
  EXPECT_TRUE(contains(run({"data", "verify", path("a")}, 2), "do not belong together"));
}

TEST_F(DataCommandTest, PartsMergeToTheWhole) {
  write("a", 50);
  std::filesystem::create_directory(folder_ / "parts");
  run({"data", "split", path("a"), "--output-prefix", path("parts/p"), "--parts", "11"});
  EXPECT_TRUE(std::filesystem::exists(path("parts/p_part010.idx")));
  run({"merge_datasets", "--input", path("parts"), "--output-prefix", path("b")});
  expect_same("a", "b");
  run({"data", "merge", path("b"), "--output-prefix", path("b")});  // over itself
  expect_same("a", "b");
}

TEST_F(DataCommandTest, SplitsByShareAndByNumber) {
  write("a", 50);
  run({"data", "split", path("a"), "--output-prefix", path("s"), "--split", "90,10,0"});
  EXPECT_EQ(IndexedCorpus(path("s_train")).num_documents(), 45);
  EXPECT_EQ(IndexedCorpus(path("s_valid")).num_documents(), 5);
  EXPECT_EQ(IndexedCorpus(path("s_valid")).length(0), 46);
  EXPECT_FALSE(std::filesystem::exists(path("s_test.idx")));
  for (const auto& [range, first, count] : {std::tuple{"10:20", 11, 10}, {"45:", 46, 5}}) {
    run({"data", "split", path("a"), "--output-prefix", path("r"), "--documents", range});
    EXPECT_EQ(IndexedCorpus(path("r")).num_documents(), count);
    EXPECT_EQ(IndexedCorpus(path("r")).length(0), first);
  }
  for (const char* range : {"5", "5:5", "6:5", "0:51", "x:5", "-1:5", "1:2:3"}) {
    const std::string error =
        run({"data", "split", path("a"), "--output-prefix", path("r"), "--documents", range}, 2);
    EXPECT_TRUE(contains(error, "--documents")) << error;
  }
  EXPECT_TRUE(contains(run({"data", "split", path("a"), "--output-prefix", path("r")}, 2),
                       "give one of --split, --parts and --documents"));
}

TEST_F(DataCommandTest, PartsAndWholesKeepTheirTokenizer) {
  write("a", 5, TokenType::u16, "one");
  write("b", 5, TokenType::u16, "other");
  run({"data", "split", path("a"), "--output-prefix", path("p"), "--parts", "2"});
  run({"data", "merge", path("p_part000"), path("p_part001"), "--output-prefix", path("c")});
  EXPECT_EQ(read_corpus_tokenizer(path("c"))->hash, "hash of one");
  EXPECT_TRUE(contains(run({"data", "inspect", path("c")}), "made with the tokenizer one"));
  const Arguments mixed = {"data", "merge", path("c"), path("b"), "--output-prefix", path("d")};
  EXPECT_TRUE(contains(run(mixed, 2), "--allow-tokenizer-mismatch"));
  EXPECT_FALSE(std::filesystem::exists(path("d.idx")));
  Arguments allowed = mixed;
  allowed.push_back("--allow-tokenizer-mismatch");
  run(allowed);
  EXPECT_FALSE(read_corpus_tokenizer(path("d")));
}

TEST_F(DataCommandTest, MergeOfDifferentTypes) {
  write("a", 5, TokenType::u16);
  write("b", 5, TokenType::i32);
  run({"data", "merge", path("a"), path("b"), "--output-prefix", path("c")});
  EXPECT_EQ(IndexedCorpus(path("c")).type(), TokenType::i32);
  EXPECT_EQ(IndexedCorpus(path("c")).num_documents(), 10);
}

TEST_F(DataCommandTest, OutputsThatCannotBe) {
  write("a", 5);
  const std::string error = run({"data", "merge", path("a"), "--output-prefix", path("no/x")}, 2);
  EXPECT_TRUE(contains(error, "is not a folder; create it first")) << error;
}

}  // namespace
}  // namespace bloomery
