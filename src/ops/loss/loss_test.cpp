// The kernels of the loss on rows that stretch the range of exponentials; head_loss_test.cpp has
// the rest.
#include "ops/loss/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace bloomery {
namespace {

constexpr std::int64_t kColumns = 70;  // whole vectors and a few more
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Row {
  float most;  // of the logits, but for those at `places`
  std::vector<std::pair<std::int64_t, float>> places;
  std::int32_t label;

  std::vector<float> logits() const {
    std::vector<float> values(kColumns, most);
    for (const auto& [column, value] : places) {
      values[static_cast<std::size_t>(column)] = value;
    }
    return values;
  }
};

struct Result {
  std::vector<float> losses, gradients;
};

// By one pass over the logits, or by one for each kernel.
Result computed(const std::vector<Row>& rows, bool one_pass) {
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  std::vector<float> values;
  std::vector<std::int32_t> label_values;
  for (const Row& row : rows) {
    const std::vector<float> logits = row.logits();
    values.insert(values.end(), logits.begin(), logits.end());
    label_values.push_back(row.label);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const Tensor logits = Tensor::from_host(stream, values, {count, kColumns});
  const Tensor labels = Tensor::from_host(stream, label_values, {count});
  const Tensor statistics = Tensor::empty(stream, DType::fp32, {5, count});
  const Tensor max = statistics.slice(0, 1), sum = statistics.slice(1, 2);
  const Tensor target = statistics.slice(2, 3), losses = statistics.slice(3, 4);
  const Tensor inverse = Tensor::from_host(stream, std::vector<float>{1.0f}, {1});
  const LossColumns columns{.first_token = 0, .num_valid = kColumns};
  if (one_pass) {
    launch(stream, LossAndGradient{.logits = logits,
                                   .labels = labels,
                                   .columns = columns,
                                   .inverse = inverse,
                                   .vocabulary = kColumns,
                                   .losses = losses});
    return {losses.to_host<float>(stream), logits.to_host<float>(stream)};
  }
  launch(stream, LossStatistics{.logits = logits,
                                .labels = labels,
                                .columns = columns,
                                .local_max = statistics.slice(4, 5),
                                .max = max,
                                .sum = sum,
                                .target = target});
  launch(stream, LossTokens{.max = max,
                            .sum = sum,
                            .target = target,
                            .labels = labels,
                            .vocabulary = kColumns,
                            .losses = losses});
  launch(stream, LossGradient{.logits = logits,
                              .labels = labels,
                              .columns = columns,
                              .max = max,
                              .sum = sum,
                              .inverse = inverse});
  return {losses.to_host<float>(stream), logits.to_host<float>(stream)};
}

class LossTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(InOnePass, LossTest, ::testing::Bool());

TEST_P(LossTest, RowsOfExtremeLogits) {
  const std::vector<Row> rows{
      {-kInfinity, {{5, 0.0f}}, 5},               // one token is possible
      {-kInfinity, {{5, 0.0f}, {68, 1.0f}}, 68},  // two are, far apart
      {-80.0f, {{3, 50.0f}}, 9},                  // certain, and wrong
      {-3e38f, {{3, 3e38f}}, 9},                  // the difference overflows
      {-87.2f, {{64, 0.0f}}, 64},                 // the last that counts
      {-87.5f, {{64, 0.0f}}, 0},                  // the first that does not
      {3e38f, {}, 1},                             // all the same
      {0.0f, {{69, -kInfinity}}, 69},             // an impossible token came
  };
  const Result result = computed(rows, GetParam());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    SCOPED_TRACE(::testing::Message() << "row " << r);
    const std::vector<float> logits = rows[r].logits();
    const auto label = static_cast<std::size_t>(rows[r].label);
    const double max = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) {
      sum += std::exp(x - max);
    }
    const double loss = std::log(sum) + (max - logits[label]);
    if (loss > std::numeric_limits<float>::max()) {
      EXPECT_EQ(result.losses[r], kInfinity);
    } else {
      EXPECT_NEAR(result.losses[r], loss, 1e-6 * std::abs(loss) + 1e-7);
    }
    for (std::size_t c = 0; c < logits.size(); ++c) {
      const double expected = std::exp(logits[c] - max) / sum - (c == label ? 1 : 0);
      const float gradient = result.gradients[r * kColumns + c];
      EXPECT_NEAR(gradient, expected, 1e-6 * std::abs(expected) + 1e-7) << "column " << c;
      if (logits[c] == -kInfinity && c != label) {
        EXPECT_EQ(gradient, 0.0f) << "column " << c;
      }
    }
  }
}

TEST_P(LossTest, NanReachesTheLossAndTheGradient) {
  for (const std::int64_t column : {0, 20, 69}) {
    const Result result = computed({{1.0f, {{column, NAN}}, 7}, {1.0f, {}, 7}}, GetParam());
    EXPECT_TRUE(std::isnan(result.losses[0])) << column;
    EXPECT_TRUE(std::isnan(result.gradients[0])) << column;
    EXPECT_FALSE(std::isnan(result.losses[1])) << column;
  }
}

}  // namespace
}  // namespace bloomery
