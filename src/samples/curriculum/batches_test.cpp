#include "samples/curriculum/batches.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

using Numbers = std::vector<std::int64_t>;

// What numpy's default_rng(1234) gives.
TEST(NumpyGenerator, DrawsAsNumpy) {
  NumpyGenerator random(1234);
  Numbers values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  random.shuffle(std::span(values));
  EXPECT_EQ(values, (Numbers{8, 9, 5, 0, 2, 6, 4, 7, 1, 3}));
  const double weights[] = {.5, .3, .2};
  EXPECT_EQ(random.choice(weights, 8), (Numbers{0, 0, 2, 0, 0, 1, 2, 2}));
  EXPECT_DOUBLE_EQ(random.random(), .674881313349695);
}

class Batches : public ::testing::Test {
 protected:
  void SetUp() override {
    Rows samples, metrics;
    const std::vector<Numbers> rows = {{3}, {1, 9}, {0, 4, 5, 6, 7, 8, 10, 11}, {2}};
    for (std::int64_t value = 10; value < 14; ++value) {
      samples.add(rows[static_cast<std::size_t>(value - 10)]);
      metrics.add(std::span(&value, 1));
    }
    write_rows(path("sample"), RowType::u8, samples);
    write_rows(path("metric"), RowType::u8, metrics);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string metric(const std::string& kind, int min, int max, const std::string& schedule) const {
    return concat(R"({"index_to_sample_path": ")", path("sample"),
                  R"(", "index_to_metric_path": ")", path("metric"), R"(", "difficulty_type": ")",
                  kind, R"(", "clustering_type": "schedule_based", "min_difficulty": )", min,
                  R"(, "max_difficulty": )", max, ", ", schedule, "}");
  }
  static std::string linear(int total, int step) {
    return concat(R"("schedule_type": "fixed_linear", "schedule_config": {)",
                  R"("total_curriculum_step": )", total, R"(, "difficulty_step": )", step, "}");
  }
  static std::vector<Numbers> first(CurriculumBatches batches, int count) {
    std::vector<Numbers> all;
    while (count-- > 0) all.push_back(batches.next());
    return all;
  }

  TemporaryFolder folder_;
};

// What DeepSpeed's sampler gave; tests/long/curricula.py compares random configurations.
TEST_F(Batches, OfPercentilesAreDeepSpeeds) {
  const CurriculumOptions options{
      .metrics =
          curriculum_metrics(concat(R"({"voc": )", metric("percentile", 1, 4, linear(4, 1)), "}")),
      .cluster_path = path("clusters")};
  EXPECT_EQ(
      first(CurriculumBatches(options, 12, 4), 6),
      (std::vector<Numbers>{
          {3, 1, 9, 3}, {4, 9, 0, 1}, {6, 3, 9, 5}, {0, 8, 1, 10}, {2, 7, 4, 5}, {9, 2, 1, 11}}));
  EXPECT_EQ(read_rows(path("clusters/cluster_voc4")).size(), 1u);
}

TEST_F(Batches, OfValuesAreDeepSpeeds) {
  const std::string root = R"("schedule_type": "fixed_root", "schedule_config":
      {"total_curriculum_step": 9, "difficulty_step": 1, "root_degree": 2})";
  const std::string length = R"("seqlen_truncate": {"difficulty_type": "value", "clustering_type":
      "single_cluster", "min_difficulty": 8, "max_difficulty": 24, )" +
                             linear(4, 8) + "}";
  const CurriculumOptions options{
      .metrics = curriculum_metrics(
          concat(R"({"voc": )", metric("value", 10, 13, root), ", ", length, "}"))};
  const std::vector<Numbers> expected = {{3, 1, 9, 3},  {3, 9, 1, 1},  {3, 1, 9, 9},
                                         {8, 10, 5, 3}, {4, 7, 9, 11}, {0, 7, 6, 1}};
  EXPECT_EQ(first(CurriculumBatches(options, 12, 4), 6), expected);
  // Any step may be asked for, in any order.
  const CurriculumOrder order(options, 12, 4);
  EXPECT_EQ(*order.batch(5), expected[5]);
  EXPECT_EQ(*order.batch(2), expected[2]);
  for (std::int64_t step = 0; step < 200; ++step) order.batch(step);
  EXPECT_EQ(*order.batch(1), expected[1]);
}

TEST_F(Batches, SayWhatDoesNotFit) {
  const CurriculumOptions options{
      .metrics =
          curriculum_metrics(concat(R"({"voc": )", metric("percentile", 1, 4, linear(4, 1)), "}"))};
  EXPECT_THROW(CurriculumBatches(options, 11, 4), Error);  // sample 11 is not there
  for (const char* json :
       {"", "{}", "[1]", R"({"voc": {}})",
        R"({"voc": {"schedule_type": "custom", "min_difficulty": 1, "max_difficulty": 2}})"}) {
    EXPECT_THROW(curriculum_metrics(json), Error) << json;
  }
  const std::string idx = read_file(path("sample.idx"));
  for (std::size_t size = 0; size < idx.size(); size += 7) {
    write_file(path("sample.idx"), idx.substr(0, size));
    EXPECT_THROW(read_rows(path("sample")), Error) << size;
  }
}

TEST(RowFile, TypesAreTheSmallestThatFit) {
  EXPECT_EQ(fitting_type(0, 255), RowType::u8);
  EXPECT_EQ(fitting_type(0, 256), RowType::u16);
  EXPECT_EQ(fitting_type(0, 65536), RowType::u32);
  EXPECT_EQ(fitting_type(0, 4294967296), RowType::u64);
  EXPECT_EQ(fitting_type(-1, 127), RowType::i8);
  EXPECT_EQ(fitting_type(-129, 0), RowType::i16);
  EXPECT_EQ(fitting_type(-1, 2147483648), RowType::i64);
}

}  // namespace
}  // namespace bloomery
