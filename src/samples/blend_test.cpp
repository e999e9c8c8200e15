// Blends against arrays and texts made by numpy (tools/golden/samples.py).
#include "samples/blend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/md5.h"
#include "base/temporary_folder.h"
#include "harness/shared_data.h"
#include "samples/numpy_text.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {
namespace {

nlohmann::json golden(const char* part) {
  return nlohmann::json::parse(golden_file("samples.json")).at(part);
}

template <class T>
std::string md5_of(const std::vector<T>& values) {
  return md5_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

WeightedPaths paths_of(const std::vector<double>& weights) {
  std::vector<std::string> words;
  for (const double weight : weights) {
    words.push_back(nlohmann::json(weight).dump());
    words.push_back(concat("p", words.size()));
  }
  return parse_weighted_paths(words, "--data-path");
}

TEST(NumpyText, PrintsAsNumpy) {
  for (const nlohmann::json& expected : golden("printed")) {
    EXPECT_EQ(numpy_text(expected["weights"].get<std::vector<double>>()),
              expected["printed"].get<std::string>());
  }
}

TEST(Blend, OrderAndSizesAreMegatronDeepSpeeds) {
  for (const nlohmann::json& expected : golden("blend")) {
    SCOPED_TRACE(expected["weights"].dump());
    const WeightedPaths paths = paths_of(expected["weights"]);
    const std::vector<std::int64_t> sizes = paths.sizes(expected["requested"]);
    EXPECT_EQ(sizes, expected["sizes"].get<std::vector<std::int64_t>>());
    std::vector<double> weights = paths.weights;
    const double sum = numpy_sum(weights);
    std::int64_t size = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] /= sum;
      size += sizes[i];
    }
    EXPECT_EQ(numpy_text(weights), expected["printed"]);
    const BlendIndex index = build_blend_index(weights, size);
    EXPECT_EQ(md5_of(index.sources), expected["md5_which"]);
    EXPECT_EQ(md5_of(index.samples), expected["md5_sample"]);
  }
}

// megatron-core would build 32 and 71 samples (tests/long/samples.py): it rounds up twice.
TEST(Blend, SizesAreNotMegatronCores) {
  EXPECT_EQ(paths_of({0.305, 0.695}).sizes(100), (std::vector<std::int64_t>{31, 70}));
}

TEST(WeightedPaths, TakeOnePrefixOrPairs) {
  const auto parse = [](const std::vector<std::string>& words) {
    return parse_weighted_paths(words, "--data-path");
  };
  EXPECT_FALSE(parse({"a/b"}).is_blend);
  EXPECT_EQ(parse({"a/b"}).sizes(7), std::vector<std::int64_t>{7});
  const WeightedPaths pairs = parse({"3", " a ", "1", "b"});
  EXPECT_TRUE(pairs.is_blend);
  EXPECT_EQ(pairs.prefixes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(pairs.weights, (std::vector<double>{0.75, 0.25}));
  EXPECT_THROW(parse({}), Error);
  EXPECT_THROW(parse({"1", "a", "b"}), Error);
  EXPECT_THROW(parse({"a", "1"}), Error);
  EXPECT_THROW(parse({"-1", "a", "2", "b"}), Error);
  EXPECT_THROW(parse({"0", "a", "0", "b"}), Error);
  EXPECT_THROW(parse({"1", " ", "0", "b"}), Error);
  EXPECT_THROW(parse(std::vector<std::string>(2 * 255, "1")), Error);
}

// Sample k is {number, k}.
class Numbered : public Dataset {
 public:
  Numbered(TokenId number, std::int64_t size)
      : number_(number), size_(size), description_(concat("source ", number, "\n")) {}

  std::int64_t size() const override { return size_; }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override {
    check(k < size_, "past the end");
    out.array<TokenId>("source")[0] = number_;
  }
  const std::string& description() const override { return description_; }

 private:
  TokenId number_;
  std::int64_t size_;
  std::string description_;
  SampleFields fields_{{"source", DType::int32, {}}};
};

class BlendTest : public testing::Test {
 protected:
  std::unique_ptr<Blend> blend(std::int64_t size = 12) const {
    std::vector<std::unique_ptr<Dataset>> sources;
    for (TokenId i = 0; i < 3; ++i) {
      sources.push_back(std::make_unique<Numbered>(i, i == 2 ? 2 : 100));
    }
    return std::make_unique<Blend>(std::move(sources), std::vector{0.3, 0.5, 0.2}, size,
                                   folder_.path().string(), Log(0, 1, LogLevel::error));
  }
  static TokenId source_of(const Blend& blend, std::int64_t k) {
    HostBatch batch(DeviceKind::cpu, blend.fields(), 1);
    blend.read(k, Sample(batch, 0));
    return batch.array<TokenId>("source")[0];
  }
  static std::vector<TokenId> sources_of(const Blend& blend) {
    std::vector<TokenId> sources;
    for (std::int64_t k = 0; k < blend.size(); ++k) {
      sources.push_back(source_of(blend, k));
    }
    return sources;
  }
  std::filesystem::path file(const Blend& blend, const char* end) const {
    return folder_.path() / (md5_hex(blend.description()) + end);
  }

  TemporaryFolder folder_;
  const std::vector<TokenId> expected_ = {1, 0, 2, 1, 0, 1, 2, 1, 0, 1, 0, 1};
};

TEST_F(BlendTest, ReadsTheSourcesInTurnAndKeepsTheIndex) {
  const auto first = blend();
  EXPECT_EQ(sources_of(*first), expected_);
  EXPECT_EQ(first->description(),
            "Blendable dataset\n\nDatasets:\nsource 0\n\n\nsource 1\n\n\nsource 2\n\n\n"
            "Weights: [0.3 0.5 0.2]\nSize: 12\n");
  EXPECT_EQ(read_file(file(*first, ".dsc")), first->description());
  EXPECT_EQ(NpyFile(file(*first, "_index.npy")).type(), NpyType::u8);
  EXPECT_EQ(NpyFile(file(*first, "_sample_index.npy")).type(), NpyType::i64);
  EXPECT_EQ(sources_of(*blend()), expected_);
  EXPECT_THROW(source_of(*first, 12), Error);
  EXPECT_THROW(source_of(*blend(13), 12), Error);  // the third sample of a source of two
}

TEST_F(BlendTest, BuildsADamagedIndexAgain) {
  const auto first = blend();
  std::filesystem::resize_file(file(*first, "_index.npy"), 130);
  EXPECT_EQ(sources_of(*blend()), expected_);
  write_npy<std::int32_t>(file(*first, "_index.npy"), std::vector<std::int32_t>(12), {12});
  EXPECT_EQ(sources_of(*blend()), expected_);
}

TEST_F(BlendTest, ThreadsMayRace) {
  std::vector<std::thread> threads;
  std::vector<std::vector<TokenId>> seen(6);
  for (std::size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&, t] { seen[t] = sources_of(*blend()); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& sources : seen) {
    EXPECT_EQ(sources, expected_);
  }
}

}  // namespace
}  // namespace bloomery
