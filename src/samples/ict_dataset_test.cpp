// ICT samples beyond those that megatron_samples_test.cpp compares: titles, and what is refused.
#include "samples/ict_dataset.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/generators/python_random.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

// Document d has 2 + d % 3 sentences of the token 100 + d, and the title 200 + d.
class IctDatasetTest : public ::testing::Test {
 protected:
  IctDatasetTest() {
    data_.data_path = {at("corpus")};
    data_.split = "5,5,0";
    options_.seq_length = 16;
    options_.blocks.titles = {at("titles")};
    write("corpus", 10, [](int d) { return std::vector<Ids>(2 + d % 3, Ids(4, 100 + d)); });
    write("titles", 10, [](int d) { return std::vector<Ids>{{200 + d}}; });
  }
  std::string at(const char* name) const { return (folder_.path() / name).string(); }
  template <class Document>
  void write(const char* name, int count, const Document& document) const {
    IndexedWriter writer(at(name), TokenType::u16);
    for (int d = 0; d < count; ++d) {
      for (const Ids& sentence : document(d)) {
        writer.add_sequence(sentence);
      }
      writer.end_document();
    }
    writer.commit();
  }
  std::vector<Ids> contexts(Split split) const {
    DatasetBuilder builder(data_, ict_samples(options_, {.cls = 1, .sep = 2, .pad = 0}, data_),
                           Log(0, 1, LogLevel::error));
    const auto dataset = builder.build(split, 20);
    HostBatch sample(DeviceKind::cpu, dataset->fields(), 1);
    std::vector<Ids> all;
    for (std::int64_t k = 0; k < dataset->size(); ++k) {
      dataset->read(k, Sample(sample, 0));
      const auto tokens = sample.array<TokenId>("encoder_tokens");
      const auto length = sample.array<std::int32_t>("encoder_lengths")[0];
      all.emplace_back(tokens.begin(), tokens.begin() + length);
      EXPECT_TRUE(
          std::all_of(tokens.begin() + length, tokens.end(), [](TokenId t) { return t == 0; }));
    }
    return all;
  }

  TemporaryFolder folder_;
  DataOptions data_;
  SentenceSampleOptions options_;
};

TEST_F(IctDatasetTest, EveryBlockHasTheTitleOfItsDocument) {
  for (const Split split : {Split::train, Split::valid}) {
    for (const Ids& context : contexts(split)) {
      ASSERT_GE(context.size(), 5u);
      EXPECT_EQ(context[1] - 100, context[3]) << "title and text of one document";
      EXPECT_EQ(context[3] >= 105, split == Split::valid);
    }
  }
  options_.blocks.titles_from_start = true;
  for (const Ids& context : contexts(Split::valid)) {
    EXPECT_EQ(context[1] - 100, context[3] - 5) << "Megatron's titles, of the first documents";
  }
}

TEST_F(IctDatasetTest, ATitleThatFillsTheSequenceIsCut) {
  write("titles", 10, [](int d) { return std::vector<Ids>{Ids(40, 200 + d)}; });
  for (const Ids& context : contexts(Split::train)) {
    EXPECT_EQ(context.size(), 16u);
    EXPECT_EQ(context[13], context[1]);
    EXPECT_EQ(context[14], 2);
    EXPECT_EQ(context[15], 2);
  }
}

TEST_F(IctDatasetTest, CorporaHaveTitlesOfTheirOwn) {
  write("other", 10, [](int d) { return std::vector<Ids>(3, Ids(4, 300 + d)); });
  write("other_titles", 10, [](int d) { return std::vector<Ids>{{400 + d}}; });
  data_.data_path = {"0.5", at("corpus"), "0.5", at("other")};
  options_.blocks.titles = {at("titles"), at("other_titles")};
  for (const Ids& context : contexts(Split::train)) {
    EXPECT_EQ(context[1] - 100, context[3]);
  }
  options_.blocks.titles.push_back(at("titles"));
  EXPECT_THROW(contexts(Split::train), Error);
}

TEST_F(IctDatasetTest, RefusesWhatHasNoTitles) {
  options_.blocks.titles = {};
  EXPECT_THROW(contexts(Split::train), Error);
  options_.blocks.titles = {at("few")};
  write("few", 4, [](int) { return std::vector<Ids>{{7}}; });
  EXPECT_THROW(contexts(Split::train), Error);
  options_.blocks.titles = {at("titles")};
  write("corpus", 10, [](int) { return std::vector<Ids>{{7}}; });
  EXPECT_THROW(contexts(Split::train), Error) << "documents of one sentence";
  options_.blocks.one_sentence = true;
  EXPECT_EQ(contexts(Split::train).size(), 20u);
}

// random.Random(seed): randint(0, 9), random(), randint(0, 2) in turn, by Python 3.
TEST(PythonRandom, DrawsWhatPythonDraws) {
  PythonRandom small(1234);
  EXPECT_EQ(small.below(10), 7u);
  EXPECT_DOUBLE_EQ(small.random(), 0.11685051774599753);
  EXPECT_EQ(small.below(3), 0u);
  PythonRandom large(std::uint64_t{1} << 40);
  EXPECT_EQ(large.below(1000), 106u);
}

}  // namespace
}  // namespace bloomery
