#include "ops/transpose/transpose.h"

#include <numeric>

#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class SwapDimsTest : public DeviceTest {};

TEST_P(SwapDimsTest, MovesRowsOfEveryLength) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  struct Sizes {
    std::int64_t first, second, inner;
  };
  for (const auto& [first, second, inner] :
       {Sizes{1, 5, 3}, Sizes{4, 1, 8}, Sizes{3, 2, 1}, Sizes{2, 7, 5}, Sizes{16, 8, 64},
        Sizes{5, 3, 1024}, Sizes{0, 3, 4}}) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(first * second * inner));
    std::iota(numbers.begin(), numbers.end(), 7);
    const Tensor x = Tensor::from_host(stream, numbers, {first * second * inner});
    const Tensor y = Tensor::empty(stream, DType::int32, {second * first * inner});
    if (x.numel() > 0) {
      launch(stream, Transpose{.x = x, .y = y, .first = first, .second = second});
    }
    const std::vector<std::int32_t> moved = y.to_host<std::int32_t>(stream);
    for (std::int64_t a = 0; a < first; ++a) {
      for (std::int64_t b = 0; b < second; ++b) {
        for (std::int64_t i = 0; i < inner; ++i) {
          ASSERT_EQ(moved[static_cast<std::size_t>((b * first + a) * inner + i)],
                    numbers[static_cast<std::size_t>((a * second + b) * inner + i)])
              << first << ' ' << second << ' ' << inner;
        }
      }
    }
  }
}

TEST_P(SwapDimsTest, AlsoOfSingleBytes) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Tensor x = Tensor::from_host<std::uint8_t>(stream, {1, 2, 3, 4, 5, 6}, {6});
  const Tensor y = Tensor::empty(stream, DType::uint8, {6});
  launch(stream, Transpose{.x = x, .y = y, .first = 2, .second = 3});
  EXPECT_EQ(y.to_host<std::uint8_t>(stream), (std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6}));
}

INSTANTIATE_TEST_SUITE_P(devices, SwapDimsTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
