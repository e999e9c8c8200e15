// Batches and the loader that prepares them.
#include "samples/loader.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "samples/language_model_dataset.h"

namespace bloomery {
namespace {

// Sample k is k, k + 1, ... with every seventh number an end of document (0).
class Counting : public Dataset {
 public:
  explicit Counting(std::int64_t size, std::int64_t fails_at = -1)
      : size_(size), fails_at_(fails_at) {}

  std::int64_t size() const override { return size_; }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& sample) const override {
    check(k != fails_at_, "sample ", k, " is bad");
    const std::span<TokenId> out = sample.array<TokenId>("tokens");
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto number = static_cast<TokenId>(k + static_cast<std::int64_t>(i));
      out[i] = number % 7 == 0 ? 0 : number;
    }
    ++reads;
  }
  const std::string& description() const override { return description_; }

  mutable std::atomic<int> reads = 0;

 private:
  std::int64_t size_, fails_at_;
  SampleFields fields_{{"tokens", DType::int32, {9}}};
  std::string description_ = "counting";
};

template <class T>
std::vector<T> copy(std::span<T> values) {
  return {values.begin(), values.end()};
}

HostBatch batch_of(const Dataset& dataset, std::initializer_list<std::int64_t> chosen) {
  HostBatch batch(DeviceKind::cpu, dataset.fields(), static_cast<std::int64_t>(chosen.size()));
  std::int64_t i = 0;
  for (const std::int64_t k : chosen) {
    dataset.read(k, Sample(batch, i++));
  }
  return batch;
}

TEST(LanguageModelDataset, ArraysFollowTheDocuments) {
  const DocumentRules rules{
      .eod = 0, .reset_position_ids = true, .reset_attention_mask = true, .eod_mask_loss = true};
  const HostBatch batch =
      batch_of(LanguageModelDataset(std::make_unique<Counting>(100), rules), {5, 1});
  using Ints = std::vector<std::int32_t>;
  const auto ints = [&](const char* name) { return copy(batch.array<std::int32_t>(name)); };
  EXPECT_EQ(ints("tokens"), (Ints{5, 6, 0, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 0, 8}));
  EXPECT_EQ(ints("labels"), (Ints{6, 0, 8, 9, 10, 11, 12, 13, 2, 3, 4, 5, 6, 0, 8, 9}));
  EXPECT_EQ(ints("positions"), (Ints{0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 0}));
  EXPECT_EQ(ints("key_begin"), (Ints{0, 0, 0, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 7}));
  EXPECT_EQ(copy(batch.array<float>("loss_mask")),
            (std::vector<float>{1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}));
}

TEST(LanguageModelDataset, HasWhatTheRulesAskFor) {
  const HostBatch plain =
      batch_of(LanguageModelDataset(std::make_unique<Counting>(100), {.eod = 0}), {5});
  EXPECT_EQ(plain.fields().size(), 2u);
  EXPECT_EQ(copy(plain.array<TokenId>("labels")),
            (std::vector<TokenId>{6, 0, 8, 9, 10, 11, 12, 13}));
  const HostBatch masked = batch_of(
      LanguageModelDataset(std::make_unique<Counting>(100), {.eod = 0, .eod_mask_loss = true}),
      {5});
  EXPECT_EQ(masked.fields().size(), 3u);
  EXPECT_EQ(copy(masked.array<float>("loss_mask")), (std::vector<float>{1, 1, 0, 1, 1, 1, 1, 1}));
}

TEST(LanguageModelDataset, ResetsNeedAnEndOfDocument) {
  DataOptions options;
  EXPECT_NO_THROW(document_rules(options, {}));
  options.eod_mask_loss = true;
  EXPECT_THROW(document_rules(options, {}), Error);
  EXPECT_EQ(document_rules(options, 3).eod, 3);
}

TEST(HostBatch, RefusesOtherNamesTypesAndSizes) {
  HostBatch batch(DeviceKind::cpu, {{"a", DType::int32, {3}}, {"b", DType::fp32, {}}}, 2);
  batch.set("a", std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(copy(Sample(batch, 1).array<std::int32_t>("a")), (std::vector<std::int32_t>{4, 5, 6}));
  EXPECT_EQ(batch.array<float>("b").size(), 2u);
  EXPECT_EQ(batch.find("c"), nullptr);
  EXPECT_THROW(batch.array<float>("c"), Error);
  EXPECT_THROW(batch.array<float>("a"), Error);
  EXPECT_THROW(batch.set("a", std::vector<std::int32_t>(5)), Error);
  EXPECT_THROW(HostBatch(DeviceKind::cpu, {}, 0), Error);
}

SamplerOptions sampler_options(LoaderType type, std::int64_t total) {
  SamplerOptions options;
  options.type = type;
  options.total_samples = total;
  options.micro_batch_size = 3;
  options.data_parallel_size = 2;
  options.data_parallel_rank = 1;
  return options;
}

std::vector<std::vector<TokenId>> tokens_of(Loader& loader, int most) {
  std::vector<std::vector<TokenId>> batches;
  for (int n = 0; n < most; ++n) {
    const auto batch = loader.next();
    if (!batch) {
      break;
    }
    batches.push_back(copy(batch->array<TokenId>("tokens")));
  }
  return batches;
}

TEST(Loader, ABatchDoesNotDependOnWorkersOrOnTheStart) {
  const Counting source(100);
  for (const LoaderType type : {LoaderType::single, LoaderType::cyclic}) {
    const Sampler sampler(sampler_options(type, 100));
    LoaderOptions options;
    options.num_workers = 0;
    Loader alone(source, sampler, options);
    const auto expected = tokens_of(alone, 30);
    EXPECT_EQ(expected.size(), type == LoaderType::single ? 16u : 30u);
    for (const int workers : {1, 3}) {
      for (const int ahead : {1, 5}) {
        for (const int start : {0, 4}) {
          options.num_workers = workers;
          options.num_ahead = ahead;
          options.consumed_samples = start * 6;
          Loader loader(source, sampler, options);
          const auto batches = tokens_of(loader, 30 - start);
          EXPECT_EQ(batches, (std::vector(expected.begin() + start, expected.end())));
          EXPECT_EQ(loader.consumed_samples(),
                    (start + static_cast<std::int64_t>(batches.size())) * 6);
        }
      }
    }
  }
}

TEST(Loader, BatchesMayBeKept) {
  const Counting source(1000);
  const Sampler sampler(sampler_options(LoaderType::single, 1000));
  std::vector<std::shared_ptr<const HostBatch>> kept;
  {
    LoaderOptions options;
    options.num_ahead = 2;
    Loader loader(source, sampler, options);
    while (auto batch = loader.next()) {
      kept.push_back(std::move(batch));
    }
  }
  ASSERT_EQ(kept.size(), 166u);
  for (std::size_t n = 0; n < kept.size(); ++n) {
    EXPECT_EQ(kept[n]->samples()[0], static_cast<std::int64_t>(n) * 6 + 3);
  }
}

TEST(Loader, AFailureComesWhenItsTurnDoes) {
  const Counting source(100, 15);  // of the third batch of rank 1
  const Sampler sampler(sampler_options(LoaderType::single, 100));
  for (const int workers : {0, 3}) {
    LoaderOptions options;
    options.num_workers = workers;
    Loader loader(source, sampler, options);
    EXPECT_EQ(tokens_of(loader, 2).size(), 2u);
    EXPECT_THROW(loader.next(), Error);
    EXPECT_THROW(loader.next(), Error);
    EXPECT_EQ(loader.consumed_samples(), 12);
  }
}

TEST(Loader, WorksAheadButNotTooFarAndStopsAtOnce) {
  const Counting source(100000);
  const Sampler sampler(sampler_options(LoaderType::single, 100000));
  {
    LoaderOptions options;
    options.num_workers = 2;
    options.num_ahead = 4;
    Loader loader(source, sampler, options);
    loader.next();
  }
  EXPECT_GE(source.reads, 3);
  EXPECT_LE(source.reads, (1 + 4) * 3);
}

}  // namespace
}  // namespace bloomery
