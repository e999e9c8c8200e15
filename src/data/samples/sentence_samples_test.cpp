// BERT and T5 samples and their mapping against tools/golden/sentence_samples.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "data/samples/sentence_dataset.h"

namespace bloomery {
namespace {

nlohmann::json golden(const char* part) {
  const char* root = std::getenv("BLOOMERY_ROOT");
  check(root != nullptr, "run the tests with ctest, or set BLOOMERY_ROOT to the repository");
  return nlohmann::json::parse(read_file(std::string(root) + "/tests/golden/sentence_samples.json"))
      .at(part);
}

using Ids = std::vector<TokenId>;

MaskingVocabulary golden_vocabulary() {
  MaskingVocabulary vocabulary;
  for (TokenId id = 0; id < 300; ++id) {
    vocabulary.continues.push_back(id >= 30 && id % 3 == 0);
  }
  vocabulary.pad = 0;
  vocabulary.cls = 1;
  vocabulary.sep = 2;
  vocabulary.mask = 3;
  vocabulary.bos = 4;
  vocabulary.eos = 5;
  vocabulary.sentinels.resize(20);
  std::iota(vocabulary.sentinels.begin(), vocabulary.sentinels.end(), 10);
  return vocabulary;
}

std::int64_t seed_of(const nlohmann::json& expected) {
  return expected["seed"].get<std::int64_t>() % (std::int64_t{1} << 32);
}

TEST(BertSample, IsMegatrons) {
  const MaskingVocabulary vocabulary = golden_vocabulary();
  for (const nlohmann::json& expected : golden("bert")) {
    SCOPED_TRACE(expected.dump().substr(0, 150));
    NumpyRandom random(seed_of(expected));
    const BertSample sample = make_bert_sample(
        expected["sentences"].get<SentenceTokens>(), expected["target"], expected["seq_length"],
        expected["probability"], expected["binary_head"], vocabulary, random);
    if (expected.contains("nothing")) {  // the probability is 0
      EXPECT_EQ(sample.labels, Ids(64, -1));
      continue;
    }
    EXPECT_EQ(sample.tokens, expected["tokens"].get<Ids>());
    EXPECT_EQ(sample.types, expected["types"].get<Ids>());
    EXPECT_EQ(sample.labels, expected["labels"].get<Ids>());
    EXPECT_EQ(sample.is_random, expected["is_random"]);
    EXPECT_EQ(sample.truncated, expected["truncated"]);
    for (std::int64_t i = 0; i < 64; ++i) {
      EXPECT_EQ(sample.padding_mask[i], i < expected["num_tokens"] ? 1 : 0);
      EXPECT_EQ(sample.loss_mask[i], sample.labels[i] == -1 ? 0 : 1);
    }
  }
}

TEST(BertSample, RefusesWhatDoesNotFit) {
  const MaskingVocabulary vocabulary = golden_vocabulary();
  NumpyRandom random(1);
  EXPECT_THROW(make_bert_sample({{40}, {41}}, 62, 64, 0.15, true, vocabulary, random), Error);
  EXPECT_THROW(make_bert_sample({{40, 41}}, 9, 64, 0.15, true, vocabulary, random), Error);
  EXPECT_THROW(make_bert_sample({{40, 300}}, 9, 64, 0.15, false, vocabulary, random), Error);
}

TEST(T5Sample, IsMegatrons) {
  const MaskingVocabulary vocabulary = golden_vocabulary();
  for (const nlohmann::json& expected : golden("t5")) {
    SCOPED_TRACE(expected.dump().substr(0, 150));
    NumpyRandom random(seed_of(expected));
    const T5Sample sample =
        make_t5_sample(expected["sentences"].get<SentenceTokens>(), expected["target"], 64, 48,
                       expected["probability"], vocabulary, random);
    EXPECT_EQ(sample.encoder_tokens, expected["encoder"].get<Ids>());
    EXPECT_EQ(sample.decoder_tokens, expected["decoder"].get<Ids>());
    EXPECT_EQ(sample.labels, expected["labels"].get<Ids>());
    EXPECT_EQ(sample.truncated, expected["truncated"]);
    for (std::size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(sample.loss_mask[i], sample.labels[i] == -1 ? 0 : 1);
    }
  }
}

TEST(T5Sample, SaysWhatIsTooSmall) {
  MaskingVocabulary vocabulary = golden_vocabulary();
  const SentenceTokens sentences = {Ids(60, 40)};
  {
    NumpyRandom random(1);
    EXPECT_THROW(make_t5_sample(sentences, 60, 64, 3, 0.15, vocabulary, random), Error);
  }
  vocabulary.sentinels.resize(1);
  NumpyRandom random(1);
  EXPECT_THROW(make_t5_sample(sentences, 60, 64, 48, 0.15, vocabulary, random), Error);
}

MappingOptions options_of(const nlohmann::json& expected) {
  MappingOptions options;
  options.num_epochs = expected["epochs"];
  options.max_samples = expected["max_samples"];
  options.max_length = expected["max_length"];
  options.short_seq_prob = expected["short"];
  options.seed = expected["seed"];
  options.min_sentences = expected["least"];
  return options;
}

TEST(SentenceMapping, RowsAreMegatrons) {
  for (const nlohmann::json& expected : golden("mapping")) {
    SCOPED_TRACE(expected.dump().substr(0, 150));
    constexpr std::int64_t kFirst = 7;  // a split need not begin with the corpus
    Sentences sentences;
    sentences.borders = {kFirst};
    for (const nlohmann::json& document : expected["documents"]) {
      sentences.borders.push_back(sentences.borders.back() +
                                  static_cast<std::int64_t>(document.size()));
      for (const std::int32_t length : document) {
        sentences.lengths.push_back(length);
      }
    }
    const auto rows = build_mapping<std::uint32_t>(sentences, options_of(expected));
    const auto wide = build_mapping<std::uint64_t>(sentences, options_of(expected));
    ASSERT_EQ(rows.size(), expected["rows"].size());
    ASSERT_EQ(wide.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(rows[i][k], expected["rows"][i][k].get<std::int64_t>() + (k < 2 ? kFirst : 0));
        EXPECT_EQ(wide[i][k], rows[i][k]);
      }
    }
  }
}

TEST(SentenceMapping, HasMegatronsFileName) {
  MappingOptions options;
  options.max_samples = 1000;
  options.max_length = 509;
  EXPECT_EQ(mapping_path("d/p", Split::train, options),
            "d/p_train_indexmap_1000mns_509msl_0.10ssp_1234s.npy");
  options.num_epochs = 3;
  options.max_samples = kAnySamples;
  options.short_seq_prob = 0;
  EXPECT_EQ(mapping_path("p", Split::valid, options),
            "p_valid_indexmap_3ep_509msl_0.00ssp_1234s.npy");
  options.exact_epochs = true;
  EXPECT_EQ(mapping_path("p", Split::train, options),
            "p_train_indexmap_exact3ep_509msl_0.00ssp_1234s.npy");
}

TEST(SentenceMapping, RefusesDocumentsThatGiveNothing) {
  MappingOptions options;
  options.max_length = 10;
  options.min_sentences = 2;
  options.max_samples = 5;
  EXPECT_THROW(build_mapping<std::uint32_t>({{0, 1, 2}, {4, 4}}, options), Error);
  options.max_length = 1;
  EXPECT_THROW(build_mapping<std::uint32_t>({{0, 2}, {4, 4}}, options), Error);
}

class SentenceDatasetTest : public testing::Test {
 protected:
  SentenceDatasetTest() : prefix_((folder_.path() / "corpus").string()) {
    IndexedWriter writer(prefix_, TokenType::u16);
    for (int document = 0; document < 40; ++document) {
      for (int sentence = 0; sentence < 2 + document % 5; ++sentence) {
        Ids tokens(3 + (document * 7 + sentence * 5) % 20);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          tokens[i] = static_cast<TokenId>(30 + (document * 31 + sentence * 17 + i * 3) % 270);
        }
        writer.add_sequence(tokens);
      }
      writer.end_document();
    }
    writer.commit();
    options_.prefix = prefix_;
    options_.split_text = "8,1,1";
    options_.num_samples = 100;
    options_.seq_length = 64;
    options_.decoder_seq_length = 48;
  }

  std::shared_ptr<const IndexedCorpus> corpus() const {
    return std::make_shared<const IndexedCorpus>(prefix_);
  }

  TemporaryFolder folder_;
  std::string prefix_;
  SentenceDatasetOptions options_;
  const Log log_{0, 1, LogLevel::error};
};

TEST_F(SentenceDatasetTest, ThreadsThatRaceGetTheSameSamples) {
  constexpr int kThreads = 4;
  std::vector<std::vector<Ids>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const BertDataset bert(corpus(), golden_vocabulary(), options_, log_);
      const T5Dataset t5(corpus(), golden_vocabulary(), options_, log_);
      for (std::int64_t k = 0; k < bert.size(); ++k) {
        seen[t].push_back(bert.sample(k).tokens);
      }
      for (std::int64_t k = 0; k < t5.size(); ++k) {
        seen[t].push_back(t5.sample(k).encoder_tokens);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GE(seen[0].size(), 200u);
  for (int t = 1; t < kThreads; ++t) {
    EXPECT_EQ(seen[t], seen[0]);
  }
  EXPECT_TRUE(std::filesystem::exists(prefix_ + "_train_indexmap_100mns_61msl_0.10ssp_1234s.npy"));
}

TEST_F(SentenceDatasetTest, AMappingOfAnotherSplitIsBuiltAgain) {
  const Ids before = BertDataset(corpus(), golden_vocabulary(), options_, log_).sample(3).tokens;
  SentenceDatasetOptions narrower = options_;
  narrower.split_text = "1,9,0";  // Megatron's name for the file is the same
  const BertDataset other(corpus(), golden_vocabulary(), narrower, log_);
  EXPECT_THROW(other.sample(other.size()), Error);
  EXPECT_GE(other.size(), 100);
  EXPECT_NE(other.sample(3).tokens, before);
}

}  // namespace
}  // namespace bloomery
