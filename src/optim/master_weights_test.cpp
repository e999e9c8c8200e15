#include "optim/master_weights.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class MasterWeightsTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, MasterWeightsTest, every_device(), device_label);

std::vector<double> drawn(std::int64_t count) {
  const RandomKey key = random_key(3, "weights");
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(random_normal(key, static_cast<std::uint64_t>(i))));
  }
  return numbers;
}

// As they are, and as halves.
std::vector<MasterWeights> both_kinds(Stream& stream, std::int64_t count) {
  return {{.whole = Tensor::zeros(stream, DType::fp32, {count})},
          {.split = true,
           .value = Tensor::zeros(stream, DType::bf16, {count}),
           .low = Tensor::zeros(stream, DType::uint8, {kLowHalfBytes * count})}};
}

TEST_P(MasterWeightsTest, AreWhatWasSet) {
  Machine machine(GetParam());
  constexpr std::int64_t kCount = 1003;
  const std::vector<double> numbers = drawn(kCount);
  for (const MasterWeights& weights : both_kinds(machine.stream, kCount)) {
    EXPECT_EQ(weights.numel(), kCount);
    EXPECT_EQ(weights.dtype(), DType::fp32);
    weights.set(machine.stream, to_device(machine.stream, DType::fp32, numbers));
    EXPECT_EQ(to_doubles(machine.stream, weights.numbers(machine.stream)), numbers);
    std::vector<float> host(kCount);
    weights.copy_to(machine.stream, host.data());
    machine.stream.synchronize();
    EXPECT_EQ(std::vector<double>(host.begin(), host.end()), numbers);
  }
}

TEST_P(MasterWeightsTest, OfARangeArePartOfTheWhole) {
  Machine machine(GetParam());
  for (const MasterWeights& weights : both_kinds(machine.stream, 1000)) {
    const MasterWeights part = weights.range(128, 300);
    const Tensor room = part.room(machine.stream);
    const Tensor numbers = to_device(machine.stream, DType::fp32, drawn(300));
    machine.stream.copy(room.data(), numbers.data(), numbers.bytes());
    part.set(machine.stream, room);
    std::vector<double> expected(1000, 0.0);
    std::ranges::copy(drawn(300), expected.begin() + 128);
    EXPECT_EQ(to_doubles(machine.stream, weights.numbers(machine.stream)), expected);
  }
}

}  // namespace
}  // namespace bloomery::testing
