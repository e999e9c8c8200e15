// The kernels of a retriever's loss by themselves: ranks, ties, and scores that are no numbers;
// parallel/retrieval_loss_test.cpp has losses and gradients.
#include "ops/retrieval/retrieval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class RetrievalKernels : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, RetrievalKernels, every_device(), device_label);

struct Found {
  std::vector<std::int32_t> ranks;
  std::vector<float> losses;
};

Found rows_of(Stream& stream, const std::vector<float>& scores, std::int64_t rows, float scale) {
  const Tensor x = Tensor::from_host(stream, scores, {rows, rows});
  const Tensor losses = Tensor::empty(stream, DType::fp32, {rows});
  const Tensor ranks = Tensor::empty(stream, DType::int32, {rows});
  launch(stream, RetrievalRows{.scores = x, .scale = scale, .losses = losses, .ranks = ranks});
  EXPECT_EQ(std::isnan(x.to_host<float>(stream)[0]), std::isnan(scores[0])) << "scores stay";
  return {ranks.to_host<std::int32_t>(stream), losses.to_host<float>(stream)};
}

TEST_P(RetrievalKernels, CountWhoIsBetter) {
  Machine machine(GetParam());
  const Found found = rows_of(machine.stream, {3, 1, 2, 5, 4, 9, 1, 1, 1}, 3, 0.5f);
  EXPECT_EQ(found.ranks, (std::vector<std::int32_t>{0, 2, 2})) << "of equal ones the first is best";
  const double first = std::log(std::exp(1.5) + std::exp(0.5) + std::exp(1.0)) - 1.5;
  EXPECT_NEAR(found.losses[0], first, 1e-6);
  EXPECT_NEAR(found.losses[2], std::log(3.0), 1e-6);
}

TEST_P(RetrievalKernels, NeverFindWhatIsNoNumber) {
  Machine machine(GetParam());
  const float nan = std::nanf("");
  EXPECT_EQ(rows_of(machine.stream, {nan, nan, nan, nan}, 2, 1).ranks,
            (std::vector<std::int32_t>{1, 1}));
}

TEST_P(RetrievalKernels, LeaveOutWhatIsNotPresent) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  // Three rows with two columns each; the second row's own is missing, as is the last column.
  const Tensor x = Tensor::from_host<float>(
      stream, {1, 2, 9, 1, 0, 9, 5, 5, 5, 5, 5, 5, 0, 0, 7, 3, 3, 8}, {3, 6});
  const Tensor present = Tensor::from_host<float>(stream, {1, 1, 0, 1, 1, 0}, {6});
  const Tensor losses = Tensor::empty(stream, DType::fp32, {3});
  const Tensor counted = Tensor::empty(stream, DType::fp32, {3});
  const Tensor ranks = Tensor::empty(stream, DType::int32, {3});
  launch(stream, RetrievalRows{.scores = x,
                               .present = present,
                               .losses = losses,
                               .ranks = ranks,
                               .counted = counted,
                               .gradient = true,
                               .factor = 2});
  EXPECT_EQ(ranks.to_host<std::int32_t>(stream), (std::vector<std::int32_t>{1, -1, 1}));
  EXPECT_EQ(counted.to_host<float>(stream), (std::vector<float>{1, 0, 1}));
  const double sum = 2 * std::exp(1) + std::exp(2) + 1;
  EXPECT_NEAR(losses.to_host<float>(stream)[0], std::log(sum) - 1, 1e-6);
  EXPECT_EQ(losses.to_host<float>(stream)[1], 0);
  const std::vector<float> grad = x.to_host<float>(stream);  // of two rows' mean, times 2
  EXPECT_NEAR(grad[0], std::exp(1) / sum - 1, 1e-6);
  EXPECT_NEAR(grad[1], std::exp(2) / sum, 1e-6);
  for (const int left_out : {2, 5, 6, 7, 8, 11, 14, 17}) {
    EXPECT_EQ(grad[static_cast<std::size_t>(left_out)], 0) << left_out;
  }
}

TEST_P(RetrievalKernels, ShareOfRanks) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  std::vector<std::int32_t> ranks(1000);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = static_cast<std::int32_t>(i * 7 % 100);
  }
  const Tensor all = Tensor::from_host(stream, ranks, {1000});
  const Tensor share = Tensor::empty(stream, DType::fp32, {1});
  for (const std::int64_t most : {1, 5, 100, 2000}) {
    launch(stream, RetrievalShare{.ranks = all, .most = most, .share = share});
    EXPECT_FLOAT_EQ(share.to_host<float>(stream)[0],
                    static_cast<float>(std::min<std::int64_t>(most, 100)) / 100);
  }
}

}  // namespace
}  // namespace bloomery::testing
