#include "autograd/parameter.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

class ParameterTest : public ::testing::Test {
 protected:
  std::vector<float> host(const Tensor& tensor) { return tensor.to_host<float>(stream); }

  Device device{DeviceOptions{.num_threads = 2, .poison = true}};
  Stream stream{device};
};

TEST_F(ParameterTest, InitialValuesDependOnNameAndGlobalIndexOnly) {
  const Box whole = Box::whole({6, 10});
  const auto values = [&](const Box& box, const std::string& name, DType dtype) {
    Parameter p = make_parameter(name, box, {Init::Kind::normal, 0.5}, true);
    p.value = Tensor::empty(stream, dtype, p.local_shape);
    initialize(p, 9, stream);
    return p.value;
  };
  const std::vector<float> all = host(values(whole, "p", DType::fp32));
  for (int index = 0; index < 2; ++index) {
    const Box part = whole.split(1, index, 2);
    const std::vector<float> mine = host(values(part, "p", DType::fp32));
    const auto halves = values(part, "p", DType::bf16).to_host<bfloat16>(stream);
    for (std::int64_t i = 0; i < 30; ++i) {
      EXPECT_EQ(mine[i], all[part.global_index(i)]);
      EXPECT_EQ(halves[i].bits, bfloat16(mine[i]).bits);
    }
  }
  EXPECT_NE(host(values(whole, "q", DType::fp32)), all);
}

TEST_F(ParameterTest, InitKinds) {
  const auto values = [&](Init init) {
    Parameter p = make_parameter("p", Box::whole({1000}), init, true);
    p.value = Tensor::empty(stream, DType::fp32, p.local_shape);
    initialize(p, 9, stream);
    return host(p.value);
  };
  EXPECT_EQ(values({Init::Kind::zeros}), std::vector<float>(1000, 0));
  EXPECT_EQ(values({Init::Kind::ones}), std::vector<float>(1000, 1));
  float largest = 0, smallest = 0;
  for (const float x : values({Init::Kind::uniform, 0.25})) {
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
  }
  EXPECT_TRUE(largest > 0.24f && largest <= 0.25f && smallest < -0.24f && smallest >= -0.25f);
}

}  // namespace
}  // namespace bloomery
