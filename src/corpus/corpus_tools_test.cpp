#include "corpus/corpus_tools.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "corpus/corpus_scan.h"
#include "corpus/writer_files.h"

namespace bloomery {
namespace {

using Sequence = std::vector<TokenId>;
using Document = std::vector<Sequence>;

class CorpusToolsTest : public ::testing::Test {
 protected:
  CorpusToolsTest() { std::filesystem::create_directory(folder_); }
  ~CorpusToolsTest() override { std::filesystem::remove_all(folder_); }

  IndexedCorpus write(const std::string& name, const std::vector<Document>& documents,
                      TokenType type = TokenType::u16) {
    IndexedWriter writer(folder_ / name, type);
    for (const Document& document : documents) {
      for (const Sequence& sequence : document) {
        writer.add_sequence(sequence);
      }
      writer.end_document();
    }
    writer.commit();
    return IndexedCorpus(folder_ / name);
  }

  // As Megatron-DeepSpeed's tool writes it: `eod` in the .bin after each filled document only.
  IndexedCorpus write_without_counting(const std::vector<Document>& documents,
                                       const std::vector<TokenId>& eods) {
    write("defect", documents);
    std::vector<std::uint16_t> tokens;
    std::size_t ended = 0;
    for (const Document& document : documents) {
      for (const Sequence& sequence : document) {
        tokens.insert(tokens.end(), sequence.begin(), sequence.end());
      }
      if (!document.empty()) {
        tokens.push_back(static_cast<std::uint16_t>(eods[ended++]));
      }
    }
    std::ofstream(folder_ / "defect.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(tokens.data()),
               static_cast<std::streamsize>(2 * tokens.size()));
    return IndexedCorpus(folder_ / "defect");
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / concat("bloomery_tools_test_", getpid());
  ThreadPool pool_{2};
};

const std::vector<Document> kDocuments = {{{1, 2, 3}}, {{4}, {5, 6}, {}}, {}, {{7, 8, 9, 10}}};

std::vector<Document> random_documents(int count) {
  std::mt19937 random(7);
  std::vector<Document> documents(static_cast<std::size_t>(count));
  for (Document& document : documents) {
    document.push_back(Sequence(random() % 900));
    for (TokenId& id : document[0]) {
      id = static_cast<TokenId>(random() % (1 + random() % 5000));
    }
  }
  return documents;
}

// Without order between their renames, the .idx of one would meet the .bin of the other.
TEST_F(CorpusToolsTest, WritersOfOnePrefixCommitOneAfterTheOther) {
  auto another_writer = FileLock::try_lock(folder_ / kCorpusLock);
  ASSERT_TRUE(another_writer);
  std::atomic<bool> done = false;
  std::thread committing([&] {
    write("same", {{{1, 2, 3}}});
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(done);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "same.bin"));
  another_writer.reset();
  committing.join();
  EXPECT_EQ(IndexedCorpus(folder_ / "same").num_tokens(), 3);
}

TEST_F(CorpusToolsTest, CountsOfTokens) {
  const std::vector<Document> documents = random_documents(2000);  // several pieces of a scan
  std::vector<std::int64_t> expected(5000);
  for (const Document& document : documents) {
    for (const TokenId id : document[0]) {
      ++expected[static_cast<std::size_t>(id)];
    }
  }
  std::int64_t scanned = 0;
  std::mutex mutex;
  const IndexedCorpus corpus = write("a", documents);
  const TokenCounts counts = count_tokens(corpus, pool_, [&](std::int64_t tokens) {
    const std::lock_guard lock(mutex);
    scanned += tokens;
  });
  EXPECT_EQ(scanned, corpus.num_tokens());
  expected.resize(counts.of_id.size());
  EXPECT_EQ(counts.of_id, expected);
  EXPECT_EQ(counts.most_frequent(2), (std::vector<TokenId>{0, 1}));
}

TEST_F(CorpusToolsTest, CountsOfStrangeIds) {
  const IndexedCorpus corpus =
      write("a", {{{5, -1, 1 << 30, 5, -2, TokenCounts::kMostIds - 1, 3}}}, TokenType::i32);
  const TokenCounts counts = count_tokens(corpus, pool_);
  EXPECT_EQ(counts.negative, 2);
  EXPECT_EQ(counts.beyond, 1);
  EXPECT_EQ(counts.num_distinct(), 3);
  EXPECT_EQ(counts.most_frequent(9), (std::vector<TokenId>{5, 3, TokenCounts::kMostIds - 1}));
  EXPECT_TRUE(count_tokens(write("empty", {}), pool_).of_id.empty());
}

TEST_F(CorpusToolsTest, TheFirstStrayToken) {
  std::vector<Document> documents = random_documents(2000);
  documents[1500][0] = {1, 6000, 2};
  documents[1700][0] = {7000};
  const IndexedCorpus corpus = write("a", documents);
  EXPECT_FALSE(find_stray_token(corpus, 7001, pool_));
  const auto stray = find_stray_token(corpus, 6000, pool_);
  ASSERT_TRUE(stray);
  EXPECT_EQ(stray->sequence, 1500);
  EXPECT_EQ(stray->id, 6000);
  EXPECT_EQ(stray->position, corpus.first_token(1500) + 1);
  const IndexedCorpus negative = write("b", {{{1}}, {{2, -5}}}, TokenType::i32);
  EXPECT_EQ(find_stray_token(negative, std::int64_t{1} << 31, pool_)->sequence, 1);
}

TEST_F(CorpusToolsTest, Lengths) {
  const IndexedCorpus corpus = write("a", kDocuments);
  const LengthHistogram documents = document_lengths(corpus, pool_);
  EXPECT_EQ(documents.count, 4);
  EXPECT_EQ(documents.shortest, 0);
  EXPECT_EQ(documents.longest, 4);
  EXPECT_EQ(documents.of_bits[0], 1);  // 0
  EXPECT_EQ(documents.of_bits[2], 2);  // 3 and 3
  EXPECT_EQ(documents.of_bits[3], 1);  // 4
  EXPECT_EQ(documents.mean(), 2.5);
  const LengthHistogram sequences = sequence_lengths(corpus, pool_);
  EXPECT_EQ(sequences.count, 5);
  EXPECT_EQ(sequences.sum, 10);
}

TEST_F(CorpusToolsTest, EndOfDocumentTokensThatAreNotCounted) {
  EXPECT_FALSE(uncounted_eod(write("good", kDocuments)));
  EXPECT_EQ(uncounted_eod(write_without_counting(kDocuments, {99, 99, 99})), 99);
  EXPECT_FALSE(uncounted_eod(write_without_counting(kDocuments, {99, 98, 99})));
}

TEST_F(CorpusToolsTest, CountingThemMakesAGoodCorpus) {
  const IndexedCorpus corpus = write_without_counting(kDocuments, {99, 99, 99});
  std::vector<Document> counted = kDocuments;
  for (Document& document : counted) {
    if (!document.empty()) {
      document.back().push_back(99);
    }
  }
  for (const TokenType type : {TokenType::u16, TokenType::i32}) {
    write("expected", counted, type);
    IndexedWriter writer(folder_ / "repaired", type);
    append_counting_eod(writer, type, corpus);
    writer.commit();
    for (const char* ending : {".bin", ".idx"}) {
      EXPECT_EQ(read_file(folder_ / concat("repaired", ending)),
                read_file(folder_ / concat("expected", ending)));
    }
  }
}

TEST_F(CorpusToolsTest, PartsHaveAboutAsManyTokens) {
  const IndexedCorpus corpus = write("a", random_documents(1000));
  for (const std::int64_t parts : {1, 2, 7, 1000}) {
    const std::vector<std::int64_t> borders = equal_parts(corpus, parts);
    ASSERT_EQ(borders.size(), static_cast<std::size_t>(parts + 1));
    EXPECT_EQ(borders.front(), 0);
    EXPECT_EQ(borders.back(), 1000);
    for (std::size_t i = 1; i < borders.size(); ++i) {
      EXPECT_LT(borders[i - 1], borders[i]);
      if (parts < 10) {
        const std::int64_t share = corpus.num_tokens() * static_cast<std::int64_t>(i) / parts;
        EXPECT_NEAR(static_cast<double>(corpus.first_token(borders[i])), static_cast<double>(share),
                    900);
      }
    }
  }
  EXPECT_THROW(equal_parts(corpus, 1001), Error);
  EXPECT_EQ(equal_parts(write("empty", {}), 1), (std::vector<std::int64_t>{0, 0}));
}

TEST_F(CorpusToolsTest, PrefixesFromWords) {
  for (const char* name : {"b", "a", "a.x", "c.bin"}) {
    write(name, kDocuments);
  }
  std::ofstream(folder_ / "notes.txt") << "other files do not matter";
  EXPECT_EQ(corpus_prefixes({folder_.string()}),
            (std::vector<std::filesystem::path>{folder_ / "a", folder_ / "a.x", folder_ / "b",
                                                folder_ / "c.bin"}));
  EXPECT_EQ(corpus_prefixes({(folder_ / "b.idx").string(), (folder_ / "c.bin").string()}),
            (std::vector<std::filesystem::path>{folder_ / "b", folder_ / "c.bin"}));
  std::filesystem::remove(folder_ / "b.idx");
  EXPECT_THROW(corpus_prefixes({folder_.string()}), Error);
  std::filesystem::create_directory(folder_ / "nothing");
  EXPECT_THROW(corpus_prefixes({(folder_ / "nothing").string()}), Error);
}

TEST_F(CorpusToolsTest, TypesOfMixedCorpora) {
  std::vector<IndexedCorpus> corpora;
  corpora.push_back(write("a", kDocuments, TokenType::u8));
  EXPECT_EQ(common_type(corpora), TokenType::u8);
  corpora.push_back(write("b", kDocuments, TokenType::u16));
  EXPECT_EQ(common_type(corpora), TokenType::i32);
}

}  // namespace
}  // namespace bloomery
