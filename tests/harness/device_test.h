// Tests that run on every device: TEST_P over DeviceTest, instantiated with every_device(). On
// machines without a GPU the CUDA half is skipped. Memory is poisoned.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "build_config.h"
#include "tensor/tensor.h"

namespace bloomery::testing {

struct Machine {
  explicit Machine(DeviceKind kind, int num_threads = 2)
      : device({.kind = kind, .num_threads = num_threads, .poison = true}), stream(device) {}
  Device device;
  Stream stream;
};

class DeviceTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::cuda && num_cuda_devices() == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
};

inline auto every_device() {
  return build::cuda ? ::testing::ValuesIn(std::vector{DeviceKind::cpu, DeviceKind::cuda})
                     : ::testing::ValuesIn(std::vector{DeviceKind::cpu});
}
inline std::string device_label(const ::testing::TestParamInfo<DeviceKind>& info) {
  return info.param == DeviceKind::cuda ? "cuda" : "cpu";
}

// Rounded to the dtype, as a one-dimensional tensor.
inline Tensor to_device(Stream& stream, DType dtype, const std::vector<double>& numbers) {
  return dispatch_floating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values;
    for (const double x : numbers) {
      values.push_back(T(static_cast<Accumulator<T>>(x)));
    }
    return Tensor::from_host(stream, values, {static_cast<std::int64_t>(values.size())});
  });
}

inline std::vector<double> to_doubles(Stream& stream, const Tensor& tensor) {
  return dispatch_floating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<double> numbers;
    for (const T x : tensor.to_host<T>(stream)) {
      numbers.push_back(static_cast<Accumulator<T>>(x));
    }
    return numbers;
  });
}

inline std::vector<unsigned char> to_bytes(Stream& stream, const Tensor& tensor) {
  std::vector<unsigned char> bytes(tensor.bytes());
  stream.copy(bytes.data(), tensor.data(), bytes.size());
  stream.synchronize();
  return bytes;
}

}  // namespace bloomery::testing
