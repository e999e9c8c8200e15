// How close the passes of a step come to the machine's copy bandwidth. Disabled, because a shared
// machine may miss the bounds; run with --gtest_also_run_disabled_tests --gtest_filter='*Speed*'.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "harness/device_test.h"
#include "optim/optimizer.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kCpuElements = std::int64_t{1} << 25;
constexpr std::int64_t kCudaElements = std::int64_t{1} << 28;

class OptimizerSpeed : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) {
      device_ = std::make_unique<Device>(DeviceOptions{.kind = GetParam()});
      stream_ = std::make_unique<Stream>(*device_);
    }
  }

  std::int64_t count() const {
    return GetParam() == DeviceKind::cuda ? kCudaElements : kCpuElements;
  }

  // The best of several runs, in device time.
  double seconds(const std::function<void()>& work) {
    Event begin(*device_), end(*device_);
    double best = 1e9;
    for (int i = 0; i < 8; ++i) {
      begin.record(*stream_);
      work();
      end.record(*stream_);
      end.synchronize();
      best = std::min(best, end.seconds_since(begin));
    }
    return best;
  }

  // Bytes read and written per second by a plain copy, with all threads on the CPU.
  double copy_rate() {
    const Tensor from = Tensor::zeros(*stream_, DType::fp32, {2 * count()});
    const Tensor to = Tensor::zeros(*stream_, DType::fp32, {2 * count()});
    const double time = seconds([&] {
      if (stream_->on_cuda()) {
        stream_->copy(to.data(), from.data(), from.bytes());
      } else {
        const auto bytes = static_cast<std::int64_t>(from.bytes());
        device_->pool().for_ranges(bytes, 1 << 18, [&](std::int64_t begin, std::int64_t end) {
          std::memcpy(static_cast<char*>(to.data()) + begin,
                      static_cast<const char*>(from.data()) + begin,
                      static_cast<std::size_t>(end - begin));
        });
      }
    });
    return 2 * static_cast<double>(from.bytes()) / time;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Devices, OptimizerSpeed, every_device(), device_label);

TEST_P(OptimizerSpeed, DISABLED_IsCloseToACopy) {
  const double ceiling = copy_rate();
  std::printf("%s: copy %.1f GB/s\n", device_->description().c_str(), ceiling * 1e-9);
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    FlatShard shard{.master = Tensor::zeros(*stream_, DType::fp32, {count()}),
                    .grad = Tensor::zeros(*stream_, DType::fp32, {count()}),
                    .unit_flags = Tensor::zeros(*stream_, DType::uint8, {num_units(count())})};
    if (dtype != DType::fp32) {
      shard.form = WeightForm::master;
      shard.value = Tensor::zeros(*stream_, dtype, {count()});
    }
    stream_->fill(shard.grad.data(), 0x3C, shard.grad.bytes());  // 0.0115
    OptimizerOptions options;
    options.schedule = {.learning_rate = 1e-4, .decay_style = DecayStyle::constant};
    Optimizer optimizer(*stream_, options, {shard});
    const double norm_time = seconds([&] { optimizer.squared_norm(); });
    const double update_time = seconds([&] { optimizer.update(1); });
    const auto elements = static_cast<double>(count());
    const double norm_rate = 4 * elements / norm_time;
    const double update_rate = (dtype == DType::fp32 ? 28 : 30) * elements / update_time;
    std::printf("%s: norm %.1f GB/s (%.0f %%), update %.1f GB/s (%.0f %%), %.3f ns/element\n",
                name(dtype), norm_rate * 1e-9, 100 * norm_rate / ceiling, update_rate * 1e-9,
                100 * update_rate / ceiling, update_time * 1e9 / elements);
    const double bound = stream_->on_cuda() ? 0.9 : 0.8;
    EXPECT_GE(update_rate, bound * ceiling) << dtype;
    EXPECT_GE(norm_rate, 0.6 * ceiling) << dtype;  // reads alone do not reach a copy everywhere
  }
}

}  // namespace
}  // namespace bloomery::testing
