// Splits and GPT indices against arrays made with numpy (tools/golden/samples.py).
#include "samples/gpt_index.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/md5.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

nlohmann::json golden(const char* part) {
  return nlohmann::json::parse(golden_file("samples.json")).at(part);
}

template <class T>
std::string md5_of(const std::vector<T>& values) {
  return md5_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

TEST(Split, BordersAreMegatronDeepSpeeds) {
  for (const nlohmann::json& expected : golden("split")) {
    SCOPED_TRACE(expected.dump());
    const auto ranges = split_ranges(expected["split"], expected["count"]);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ranges[i].first, expected["borders"][i]);
      EXPECT_EQ(ranges[i].last, expected["borders"][i + 1]);
    }
  }
}

TEST(Split, RefusesNonsense) {
  EXPECT_THROW(split_ranges("", 10), Error);
  EXPECT_THROW(split_ranges("1,,1", 10), Error);
  EXPECT_THROW(split_ranges("1,a,1", 10), Error);
  EXPECT_THROW(split_ranges("0,0,0", 10), Error);
  EXPECT_THROW(split_ranges("1,-1,1", 10), Error);
  EXPECT_THROW(split_ranges("nan", 10), Error);
  EXPECT_THROW(split_ranges("0,1,1", 3), Error);  // rounds to the borders 0, -1, 1, 3
}

TEST(RequestedSamples, CountEvaluationsAsMegatron) {
  const RequestedSamples by_iterations = requested_samples(0, 2500, 8, 1000, 100);
  EXPECT_EQ(by_iterations.train, 20000);
  EXPECT_EQ(by_iterations.valid, 3 * 100 * 8);
  EXPECT_EQ(by_iterations.test, 800);
  EXPECT_EQ(requested_samples(999, 2500, 8, 1000, 100).train, 999);
  EXPECT_THROW(requested_samples(0, 2500, 8, 0, 100), Error);
}

struct BuiltIndex {
  std::vector<std::int32_t> documents;
  std::vector<SampleStart> rows;
  std::vector<std::uint32_t> shuffle;
};

BuiltIndex build(const std::vector<std::int32_t>& lengths, std::int64_t first,
                 const GptIndexPlan& plan, std::int64_t seed) {
  BuiltIndex built;
  NumpyRandom random(seed);
  const SplitRange range{first, first + static_cast<std::int64_t>(lengths.size())};
  built.documents = build_document_index(range, plan, random);
  build_sample_index(lengths, first, built.documents, plan, [&](std::span<const SampleStart> rows) {
    built.rows.insert(built.rows.end(), rows.begin(), rows.end());
  });
  built.shuffle = build_shuffle_index<std::uint32_t>(plan, random);
  return built;
}

std::vector<std::int32_t> lengths_of(const nlohmann::json& expected) {
  if (!expected.contains("made")) {
    return expected["lengths"];
  }
  const std::uint32_t modulus = expected["made"][1];
  std::vector<std::int32_t> lengths;
  for (std::uint32_t i = 0; i < expected["made"][0].get<std::uint32_t>(); ++i) {
    lengths.push_back(static_cast<std::int32_t>(i * 2654435761u % modulus));
  }
  return lengths;
}

TEST(GptIndex, ArraysAreNumpys) {
  for (const nlohmann::json& expected : golden("gpt")) {
    SCOPED_TRACE(expected.dump().substr(0, 200));
    const std::vector<std::int32_t> lengths = lengths_of(expected);
    std::int64_t tokens = 0;
    for (const std::int32_t length : lengths) {
      tokens += length;
    }
    std::optional<std::int64_t> exact;
    if (!expected["exact"].is_null()) {
      exact = expected["exact"];
    }
    const GptIndexPlan plan =
        plan_gpt_index(tokens, expected["seq_length"], expected["num_samples"], exact);
    EXPECT_EQ(plan.num_epochs, expected["epochs"]);
    EXPECT_EQ(plan.separate_last_epoch, expected["apart"]);
    EXPECT_EQ(plan.total_samples, expected["total"]);
    const BuiltIndex built = build(lengths, expected["first"], plan, expected["seed"]);
    if (expected.contains("md5_rows")) {
      EXPECT_EQ(md5_of(built.documents), expected["md5_documents"].get<std::string>());
      EXPECT_EQ(md5_of(built.rows), expected["md5_rows"].get<std::string>());
      EXPECT_EQ(md5_of(built.shuffle), expected["md5_shuffle"].get<std::string>());
      continue;
    }
    EXPECT_EQ(built.documents, expected["documents"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(built.shuffle, expected["shuffle"].get<std::vector<std::uint32_t>>());
    ASSERT_EQ(built.rows.size(), expected["rows"].size());
    for (std::size_t i = 0; i < built.rows.size(); ++i) {
      EXPECT_EQ(built.rows[i], (SampleStart{expected["rows"][i][0], expected["rows"][i][1]})) << i;
    }
  }
}

TEST(GptIndex, PlanRefusesWhatCannotBe) {
  EXPECT_THROW(plan_gpt_index(0, 4, 1), Error);
  EXPECT_THROW(plan_gpt_index(10, 0, 1), Error);
  EXPECT_THROW(plan_gpt_index(10, 4, -1), Error);
  EXPECT_THROW(plan_gpt_index(10, 1 << 20, INT64_MAX / 2), Error);
  EXPECT_THROW(plan_gpt_index(36, 4, 7, 3), Error);   // two epochs would do
  EXPECT_THROW(plan_gpt_index(36, 4, 70, 3), Error);  // three are not enough
  EXPECT_EQ(plan_gpt_index(36, 4, 7, 1).num_epochs, 1);
}

TEST(GptIndex, WideShuffleBeginsWhereMegatronsDoes) {
  EXPECT_FALSE(needs_wide_shuffle((std::int64_t{1} << 32) - 3));
  EXPECT_TRUE(needs_wide_shuffle((std::int64_t{1} << 32) - 2));
}

}  // namespace
}  // namespace bloomery
