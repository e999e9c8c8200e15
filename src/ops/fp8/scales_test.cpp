#include "ops/fp8/scales.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

class Fp8Scales : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Fp8Scales, every_device(), device_label);

// Transformer Engine's rule, from its definition.
struct Reference {
  std::int64_t length, interval;
  float largest, margin_factor;
  bool most_recent;
  float scale = 1;
  std::vector<float> history{};
  std::int64_t steps = 0;

  void step(float amax) {
    history.insert(history.begin(), std::isfinite(amax) ? amax : 0.0f);
    history.resize(std::min(history.size(), static_cast<std::size_t>(length)));
    if (steps++ % interval == 0) {
      const float seen =
          most_recent ? history.front() : *std::max_element(history.begin(), history.end());
      scale = seen > 0 ? largest / seen * margin_factor : scale;
    }
  }
};

struct Rule {
  std::int64_t history, interval, margin;
  bool most_recent;
};

void compare(DeviceKind kind, const Rule& rule) {
  Machine machine(kind);
  Stream& stream = machine.stream;
  const float margin_factor = std::exp2(-static_cast<float>(rule.margin));
  std::vector<Reference> references;
  std::vector<float> limits, rows;
  for (const float limit : {448.0f, 57344.0f, 448.0f}) {
    references.push_back({rule.history, rule.interval, limit, margin_factor, rule.most_recent});
    limits.push_back(limit);
    rows.insert(rows.end(), {1, static_cast<float>(rule.interval - 1)});
    rows.resize(rows.size() + static_cast<std::size_t>(rule.history));
  }
  const std::int64_t length = ScaleRow::length(rule.history);
  const Tensor state = Tensor::from_host(stream, rows, {3, length});
  const Tensor largest = Tensor::from_host(stream, limits, {3});
  const Tensor inverse = Tensor::zeros(stream, DType::fp32, {3, 2});
  for (int step = 0; step < 12; ++step) {
    const auto x = static_cast<float>(step);
    const std::vector<float> amaxes = {
        std::abs(5 - x),  // zero in between
        step == 3 ? std::numeric_limits<float>::infinity() : 1e-3f / (x + 1),
        step == 5 ? std::numeric_limits<float>::quiet_NaN() : 3.7f + x};
    const Tensor amax = Tensor::from_host(stream, amaxes, {3});
    launch(stream, UpdateScales{.amax = amax,
                                .rows = state,
                                .inverse = inverse,
                                .largest = largest,
                                .margin_factor = margin_factor,
                                .interval = static_cast<float>(rule.interval),
                                .most_recent = rule.most_recent});
    const std::vector<float> numbers = state.to_host<float>(stream);
    for (std::size_t i = 0; i < references.size(); ++i) {
      references[i].step(amaxes[i]);
      const float* row = numbers.data() + i * static_cast<std::size_t>(length);
      EXPECT_EQ(row[ScaleRow::kScale], references[i].scale) << "step " << step << ", " << i;
      const std::vector<float>& history = references[i].history;
      EXPECT_TRUE(std::equal(history.begin(), history.end(), row + ScaleRow::kHistory));
      EXPECT_EQ(inverse.to_host<float>(stream)[2 * i], 1 / references[i].scale);
    }
    EXPECT_EQ(amax.to_host<float>(stream), std::vector<float>(3, 0.0f));
  }
}

TEST_P(Fp8Scales, FollowTheAmaxesOfEarlierSteps) {
  for (const Rule& rule : {Rule{1, 1, 0, true}, Rule{3, 1, 2, false}, Rule{4, 3, 0, false},
                           Rule{300, 2, 1, true}, Rule{1024, 1, 0, false}}) {
    compare(GetParam(), rule);
  }
}

TEST_P(Fp8Scales, OfTheTensorItself) {
  Machine machine(GetParam());
  const auto scale_for = [&](float amax, float limit) {
    const Tensor numbers = Tensor::from_host<float>(machine.stream, {amax, 0, 0}, {3});
    launch(machine.stream, ScaleOfAmax{.amax = numbers.range(0, {1}),
                                       .scale = numbers.range(1, {1}),
                                       .inverse_scale = numbers.range(2, {1}),
                                       .largest = limit});
    return numbers.to_host<float>(machine.stream);
  };
  EXPECT_EQ(scale_for(7, 448), (std::vector<float>{7, 64, 1 / 64.0f}));
  EXPECT_EQ(scale_for(0, 448), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(scale_for(std::numeric_limits<float>::infinity(), 448)[1], 1);
  EXPECT_EQ(scale_for(0x1p-149f, 57344)[1], std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace bloomery::testing
