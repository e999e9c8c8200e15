// Entries of the .idx as a corpus gives them: one by one, many at once, and of files that change.
#include "corpus/index_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

class IndexFileTest : public testing::TestWithParam<CorpusFormat> {
 protected:
  // Documents of two sequences each.
  IndexedCorpus corpus(const std::vector<int>& lengths) const {
    IndexedWriter writer(prefix_, TokenType::i32, GetParam());
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      writer.add_sequence(std::vector<TokenId>(static_cast<std::size_t>(lengths[i]), 7));
      if (i % 2 == 1) {
        writer.end_document();
      }
    }
    writer.commit();
    return IndexedCorpus(prefix_);
  }

  TemporaryFolder folder_;
  std::string prefix_ = (folder_.path() / "corpus").string();
};

TEST_P(IndexFileTest, ManyEntriesAtOnceAreThoseOneByOne) {
  const IndexedCorpus made = corpus({3, 1, 4, 1, 5, 9});
  EXPECT_EQ(made.lengths(1, 6), (std::vector<std::int32_t>{1, 4, 1, 5, 9}));
  EXPECT_EQ(made.first_tokens(1, 7), (std::vector<std::int64_t>{3, 4, 8, 9, 14, 23}));
  EXPECT_EQ(made.first_sequences(0, 4), (std::vector<std::int64_t>{0, 2, 4, 6}));
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(made.place(i).length, made.lengths(i, i + 1)[0]);
    EXPECT_EQ(made.place(i).first_token, made.first_tokens(i, i + 1)[0]);
  }
}

TEST_P(IndexFileTest, AnIndexCutShortWhileOpenIsAnError) {
  const IndexedCorpus made = corpus({3, 1, 4, 1});
  std::filesystem::resize_file(prefix_ + ".idx", 40);
  EXPECT_THROW(made.lengths(0, 4), Error);
  EXPECT_THROW(made.place(3), Error);
  EXPECT_THROW(made.first_sequence(1), Error);
  std::vector<TokenId> tokens(1);
  EXPECT_THROW(made.read(2, 0, tokens), Error);
}

TEST_P(IndexFileTest, AFingerprintTellsCorporaOfTheSameSizeApart) {
  const std::string fingerprint = corpus({1, 2, 3, 4}).fingerprint();
  EXPECT_EQ(corpus({1, 2, 3, 4}).fingerprint(), fingerprint);
  EXPECT_NE(corpus({1, 3, 2, 4}).fingerprint(), fingerprint);
  EXPECT_NE(corpus({1, 2, 3, 5}).fingerprint(), fingerprint);
}

TEST(EncodedBatch, ADocumentMayHaveMoreSequencesThanAnIntCounts) {
  EncodedBatch batch;
  batch.document_sequences.push_back(std::int64_t{1} << 31);
  EXPECT_EQ(batch.document_sequences.back(), 2147483648);
}

INSTANTIATE_TEST_SUITE_P(Formats, IndexFileTest,
                         testing::Values(CorpusFormat::mmap, CorpusFormat::cached),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace bloomery
