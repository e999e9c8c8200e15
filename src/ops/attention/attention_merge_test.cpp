#include "ops/attention/attention_merge.h"

#include <cmath>

#include "base/random.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class AttentionMergeTest : public DeviceTest {};

// Scores and values of numbers of which each query sees some in each part: merged parts must give
// the softmax over all.
TEST_P(AttentionMergeTest, IsTheSoftmaxOverAllParts) {
  constexpr std::int64_t kLength = 5, kHeads = 2, kHeadDim = 3, kParts = 4;
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Tensor sum = Tensor::empty(stream, DType::fp32, {kLength, kHeads * kHeadDim});
  const Tensor sum_lse = Tensor::empty(stream, DType::fp32, {kHeads, kLength});
  std::vector<double> weight(kLength * kHeads), mean(kLength * kHeads * kHeadDim);
  std::uint64_t draw = 0;
  for (std::int64_t part = 0; part < kParts; ++part) {
    // The last part is of some queries alone; in the first and third some queries see nothing.
    const std::int64_t first = part == kParts - 1 ? 2 : 0, queries = kLength - first;
    std::vector<float> out(static_cast<std::size_t>(queries * kHeads * kHeadDim));
    std::vector<float> lse(static_cast<std::size_t>(kHeads * queries));
    for (std::int64_t q = 0; q < queries; ++q) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        const bool none = q == 1 && part % 2 == 0;
        const auto score = static_cast<float>(5 * random_normal(1, draw++));
        lse[static_cast<std::size_t>(h * queries + q)] = none ? -INFINITY : score;
        const double share = none ? 0 : std::exp(double{score});
        weight[static_cast<std::size_t>((first + q) * kHeads + h)] += share;
        for (std::int64_t c = 0; c < kHeadDim; ++c) {
          const auto value = none ? 0.0f : static_cast<float>(random_normal(2, draw++));
          out[static_cast<std::size_t>((q * kHeads + h) * kHeadDim + c)] = value;
          mean[static_cast<std::size_t>(((first + q) * kHeads + h) * kHeadDim + c)] +=
              share * double{value};
        }
      }
    }
    const Tensor of = Tensor::from_host(stream, out, {queries, kHeads * kHeadDim});
    const Tensor their_lse = Tensor::from_host(stream, lse, {kHeads, queries});
    launch(stream, AttentionMerge{.out = of,
                                  .lse = their_lse,
                                  .sum = sum,
                                  .sum_lse = sum_lse,
                                  .num_heads = kHeads,
                                  .head_dim = kHeadDim,
                                  .num_queries = queries,
                                  .length = kLength,
                                  .first = first,
                                  .start = part == 0});
  }
  const std::vector<float> got = sum.to_host<float>(stream), lse = sum_lse.to_host<float>(stream);
  for (std::int64_t i = 0; i < kLength * kHeads; ++i) {
    const std::int64_t query = i / kHeads, head = i % kHeads;
    const double total = weight[static_cast<std::size_t>(i)];
    EXPECT_NEAR(lse[static_cast<std::size_t>(head * kLength + query)], std::log(total), 1e-5);
    for (std::int64_t c = 0; c < kHeadDim; ++c) {
      const auto at = static_cast<std::size_t>(i * kHeadDim + c);
      EXPECT_NEAR(got[at], mean[at] / total, 1e-5) << query << ' ' << head;
    }
  }
}

TEST_P(AttentionMergeTest, LeavesZerosWhereNothingIsSeen) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Tensor nothing = Tensor::from_host<float>(stream, {0, 0}, {1, 2});
  const Tensor lse = Tensor::from_host<float>(stream, {-INFINITY}, {1, 1});
  const Tensor sum = Tensor::empty(stream, DType::fp32, {1, 2});
  const Tensor sum_lse = Tensor::empty(stream, DType::fp32, {1, 1});
  for (const bool start : {true, false}) {
    launch(stream, AttentionMerge{.out = nothing,
                                  .lse = lse,
                                  .sum = sum,
                                  .sum_lse = sum_lse,
                                  .head_dim = 2,
                                  .num_queries = 1,
                                  .length = 1,
                                  .start = start});
    EXPECT_EQ(sum.to_host<float>(stream), (std::vector<float>{0, 0}));
    EXPECT_EQ(sum_lse.to_host<float>(stream), (std::vector<float>{-INFINITY}));
  }
}

INSTANTIATE_TEST_SUITE_P(devices, AttentionMergeTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
