#include "ops/arithmetic/copy_columns.h"

#include <numeric>

#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class CopyColumnsTest : public DeviceTest {};

TEST_P(CopyColumnsTest, OverwritesOrAddsAndLeavesTheOthers) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  struct Sizes {
    std::int64_t rows, columns, x_width, x_first, y_width, y_first;
  };
  for (const Sizes& s :
       {Sizes{1, 1, 1, 0, 1, 0}, Sizes{5, 3, 7, 2, 4, 1}, Sizes{3, 8, 16, 4, 12, 4},
        Sizes{2, 6, 8, 1, 6, 0}, Sizes{0, 4, 4, 0, 4, 0}}) {
    for (const bool add : {false, true}) {
      std::vector<float> x(static_cast<std::size_t>(s.rows * s.x_width));
      std::vector<float> y(static_cast<std::size_t>(s.rows * s.y_width), 0.5f);
      std::iota(x.begin(), x.end(), 1.0f);
      const Tensor from = Tensor::from_host(stream, x, {s.rows * s.x_width});
      const Tensor to = Tensor::from_host(stream, y, {s.rows * s.y_width});
      launch(stream, CopyColumns{.x = from,
                                 .y = to,
                                 .rows = s.rows,
                                 .columns = s.columns,
                                 .x_width = s.x_width,
                                 .x_first = s.x_first,
                                 .y_width = s.y_width,
                                 .y_first = s.y_first,
                                 .add = add});
      for (std::int64_t r = 0; r < s.rows; ++r) {
        for (std::int64_t c = 0; c < s.columns; ++c) {
          float& target = y[static_cast<std::size_t>(r * s.y_width + s.y_first + c)];
          target = (add ? target : 0) + x[static_cast<std::size_t>(r * s.x_width + s.x_first + c)];
        }
      }
      EXPECT_EQ(to.to_host<float>(stream), y) << s.rows << " x " << s.columns << ' ' << add;
    }
  }
}

TEST_P(CopyColumnsTest, RoundsOnceToAnotherType) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Tensor x = Tensor::from_host<float>(stream, {1.0f, 1.00390625f, -3.0f, 0.25f}, {4});
  const Tensor y = Tensor::empty(stream, DType::bf16, {4});
  launch(stream, CopyColumns{.x = x, .y = y, .rows = 2, .columns = 2, .x_width = 2, .y_width = 2});
  const Tensor back = Tensor::from_host<float>(stream, {1, 1, 1, 1}, {4});
  launch(stream,
         CopyColumns{
             .x = y, .y = back, .rows = 2, .columns = 2, .x_width = 2, .y_width = 2, .add = true});
  EXPECT_EQ(back.to_host<float>(stream), (std::vector<float>{2.0f, 2.0f, -2.0f, 1.25f}));
}

INSTANTIATE_TEST_SUITE_P(devices, CopyColumnsTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
