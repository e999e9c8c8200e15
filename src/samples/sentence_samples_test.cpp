// BERT and T5 samples and their mapping against tools/golden/sentence_samples.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "samples/sentence_dataset.h"

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
    request_.prefix = prefix_;
    request_.split_text = "8,1,1";
    request_.num_samples = 100;
    options_.seq_length = 64;
    options_.decoder_seq_length = 48;
  }

  template <class Kind>
  std::vector<Ids> samples(const char* name = "tokens") const {
    const Kind dataset(corpus(), request_, golden_vocabulary(), options_, log_);
    HostBatch batch(DeviceKind::cpu, dataset.fields(), 1);
    std::vector<Ids> all;
    for (std::int64_t k = 0; k < dataset.size(); ++k) {
      dataset.read(k, Sample(batch, 0));
      const auto ids = batch.array<TokenId>(name);
      all.emplace_back(ids.begin(), ids.end());
    }
    return all;
  }

  std::shared_ptr<const IndexedCorpus> corpus() const {
    return std::make_shared<const IndexedCorpus>(prefix_);
  }

  TemporaryFolder folder_;
  std::string prefix_;
  CorpusRequest request_;
  SentenceSampleOptions options_;
  const Log log_{0, 1, LogLevel::error};
};

TEST_F(SentenceDatasetTest, ThreadsThatRaceGetTheSameSamples) {
  constexpr int kThreads = 4;
  std::vector<std::vector<Ids>> bert(kThreads), t5(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      bert[t] = samples<BertDataset>();
      t5[t] = samples<T5Dataset>("encoder_tokens");
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GE(bert[0].size(), 100u);
  EXPECT_GE(t5[0].size(), 100u);
  for (int t = 1; t < kThreads; ++t) {
    EXPECT_EQ(bert[t], bert[0]);
    EXPECT_EQ(t5[t], t5[0]);
  }
  EXPECT_TRUE(std::filesystem::exists(prefix_ + "_train_indexmap_100mns_61msl_0.10ssp_1234s.npy"));
}

// The name of the file is the same in all of these.
TEST_F(SentenceDatasetTest, AMappingMadeForSomethingElseIsNotUsed) {
  const CorpusRequest request = request_;
  const SentenceSampleOptions options = options_;
  const auto expect_own = [&](const auto& change) {
    request_ = request;
    options_ = options;
    const std::vector<Ids> first = samples<BertDataset>();
    change();
    const std::vector<Ids> found = samples<BertDataset>();
    EXPECT_TRUE(found != first);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().string().find("indexmap") != std::string::npos) {
        std::filesystem::remove(entry.path());
      }
    }
    EXPECT_EQ(found, samples<BertDataset>());  // of a mapping built from nothing
  };
  expect_own([&] { request_.split_text = "2,7,1"; });
  expect_own([&] { request_.whole = true; });
  expect_own([&] { options_.one_segment = true; });
  expect_own([&] { options_.short_seq_prob = 0.0951; });
}

TEST_F(SentenceDatasetTest, BertArraysAreThoseOfTheSample) {
  const BertDataset dataset(corpus(), request_, golden_vocabulary(), options_, log_);
  HostBatch batch(DeviceKind::cpu, dataset.fields(), 1);
  int swapped = 0;
  for (std::int64_t k = 0; k < dataset.size(); ++k) {
    dataset.read(k, Sample(batch, 0));
    const auto tokens = batch.array<TokenId>("tokens"), labels = batch.array<TokenId>("labels"),
               types = batch.array<TokenId>("token_types");
    const auto mask = batch.array<float>("loss_mask");
    const std::int32_t length = batch.array<std::int32_t>("lengths")[0];
    swapped += batch.array<std::int32_t>("is_random")[0];
    EXPECT_EQ(tokens[0], 1);           // [CLS]
    EXPECT_EQ(tokens[length - 1], 2);  // [SEP]
    for (std::int32_t i = 0; i < 64; ++i) {
      EXPECT_EQ(mask[i], labels[i] == -1 ? 0 : 1);
      if (i >= length) {
        EXPECT_EQ(tokens[i], 0);
        EXPECT_EQ(types[i], 0);
        EXPECT_EQ(labels[i], -1);
      }
    }
  }
  EXPECT_GT(swapped, dataset.size() / 4);
  EXPECT_LT(swapped, dataset.size() * 3 / 4);
  EXPECT_THROW(dataset.read(dataset.size(), Sample(batch, 0)), Error);
}

TEST_F(SentenceDatasetTest, T5ArraysAreThoseOfTheSample) {
  const T5Dataset dataset(corpus(), request_, golden_vocabulary(), options_, log_);
  HostBatch batch(DeviceKind::cpu, dataset.fields(), 1);
  for (std::int64_t k = 0; k < dataset.size(); ++k) {
    dataset.read(k, Sample(batch, 0));
    const auto encoder = batch.array<TokenId>("encoder_tokens");
    const auto tokens = batch.array<TokenId>("tokens"), labels = batch.array<TokenId>("labels");
    const std::int32_t encoder_length = batch.array<std::int32_t>("encoder_lengths")[0];
    const std::int32_t length = batch.array<std::int32_t>("lengths")[0];
    EXPECT_EQ(tokens[0], 4);           // [BOS]
    EXPECT_EQ(labels[length - 1], 5);  // [EOS]
    for (std::int32_t i = 0; i < 48; ++i) {
      EXPECT_EQ(batch.array<float>("loss_mask")[i], i < length ? 1 : 0);
      EXPECT_EQ(tokens[i] != 0, i < length);
      if (i > 0 && i < length) {
        EXPECT_EQ(tokens[i], labels[i - 1]);
      }
    }
    for (std::int32_t i = 0; i < 64; ++i) {
      EXPECT_EQ(encoder[i] != 0, i < encoder_length);
    }
  }
}

TEST_F(SentenceDatasetTest, ABlendOfBertSamples) {
  DataOptions data;
  data.data_path = {"1", prefix_, "1", prefix_};
  data.split = "8,1,1";
  DatasetBuilder builder(data, bert_samples(options_, golden_vocabulary()), log_);
  const auto blend = builder.build(Split::train, 50);
  ASSERT_NE(blend, nullptr);
  HostBatch batch(DeviceKind::cpu, blend->fields(), 2);
  blend->read(0, Sample(batch, 0));
  blend->read(1, Sample(batch, 1));  // the same sample of the other corpus
  const auto tokens = batch.array<TokenId>("tokens");
  EXPECT_TRUE(std::ranges::equal(tokens.first(64), tokens.last(64)));
}

}  // namespace
}  // namespace bloomery
