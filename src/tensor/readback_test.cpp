#include "tensor/readback.h"

#include <gtest/gtest.h>

#include <cstring>

namespace bloomery {
namespace {

TEST(Readback, KeepsTheLastFour) {
  Device device{DeviceOptions{.num_threads = 1}};
  Stream stream{device};
  Readback readback(stream, DType::fp32, 2);
  EXPECT_THROW(readback.read(0), Error);
  for (float step = 1; step <= 6; ++step) {
    readback.publish(Tensor::from_host(stream, std::vector<float>{step, -step}, {2}));
  }
  EXPECT_EQ(readback.read(0), (std::vector<double>{6, -6}));
  EXPECT_EQ(readback.read(3), (std::vector<double>{3, -3}));
  EXPECT_THROW(readback.read(4), Error);
  EXPECT_THROW(readback.publish(Tensor::zeros(stream, DType::fp64, {2})), Error);
}

TEST(Readback, HandsOutBytesOfAnything) {
  Device device{DeviceOptions{.num_threads = 1}};
  Stream stream{device};
  Readback readback(stream, DType::uint8, 3);
  readback.publish(Tensor::from_host(stream, std::vector<std::uint8_t>{7, 8, 9}, {3}));
  const std::vector<std::uint8_t> expected = {7, 8, 9};
  ASSERT_EQ(readback.bytes(0).size(), 3u);
  EXPECT_EQ(std::memcmp(readback.bytes(0).data(), expected.data(), 3), 0);
  EXPECT_THROW(readback.read(0), Error);
}

}  // namespace
}  // namespace bloomery
