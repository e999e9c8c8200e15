#include "zero/layout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/device_test.h"
#include "ops/optimizer/units.h"

namespace bloomery::testing {
namespace {

// Parameters as a small model has them: a padded table, a bias, a scalar, a matrix of whole units.
struct Model {
  Parameter table = make_parameter("table", Box::whole({7, 19}), {Init::Kind::normal, 0.02}, true);
  Parameter bias = make_parameter("bias", Box::whole({130}), {Init::Kind::ones}, false);
  Parameter gain = make_parameter("gain", Box::whole({1}), {Init::Kind::zeros}, false);
  Parameter matrix =
      make_parameter("matrix", Box::whole({16, 16}), {Init::Kind::uniform, 0.3}, true);

  Model() { table.local_shape = {8, 19}; }                                  // one padding row
  ParameterList list() { return {&table, &bias, &gain, &matrix, &table}; }  // table is tied
};

constexpr std::int64_t kFirst[] = {0, 256, 512, 640};  // 152, 130, 1 and 256 elements
constexpr std::int64_t kElements = 896;

// Whether element i of the flat buffers belongs to the true extent of a parameter.
bool is_used(std::int64_t i) { return i < 7 * 19 || (256 <= i && i < 386) || i == 512 || 640 <= i; }

TEST(FlatLayout, PlacesDistinctParametersAtUnits) {
  Machine machine(DeviceKind::cpu);
  Model model;
  const FlatLayout layout(machine.stream, model.list(), {.dtype = DType::bf16});
  ASSERT_EQ(layout.places().size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const FlatLayout::Place& place = layout.places()[i];
    EXPECT_EQ(place.first, kFirst[i]);
    EXPECT_EQ(place.parameter, model.list()[i]);
    EXPECT_EQ(place.parameter->value.shape(), place.parameter->local_shape);
    EXPECT_EQ(place.parameter->grad.dtype(), DType::fp32);
    EXPECT_EQ(place.parameter->value.data(), layout.values().range(place.first, {1}).data());
    EXPECT_EQ(place.parameter->grad.data(), layout.grads().range(place.first, {1}).data());
  }
  EXPECT_EQ(layout.num_elements(), kElements);
  EXPECT_EQ(layout.num_parameter_elements(), 152 + 130 + 1 + 256);
  const std::vector<std::uint8_t> flags = {1, 1, 0, 0, 0, 1, 1};
  EXPECT_EQ(layout.unit_flags().to_host<std::uint8_t>(machine.stream), flags);
}

TEST(FlatLayout, MarksWhatOtherRanksCount) {
  Machine machine(DeviceKind::cpu);
  Model model;
  const FlatLayout layout(
      machine.stream, model.list(),
      {.counted_in_norm = [](const Parameter& parameter) { return parameter.name != "bias"; }});
  const std::vector<std::uint8_t> flags = {1, 1, kUnitUncounted, kUnitUncounted, 0, 1, 1};
  EXPECT_EQ(layout.unit_flags().to_host<std::uint8_t>(machine.stream), flags);
}

class FlatLayoutInit : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, FlatLayoutInit, every_device(), device_label);

TEST_P(FlatLayoutInit, KeepsUnroundedNumbersInTheMasterWeights) {
  Machine machine(GetParam());
  Model exact_model;
  FlatLayout exact(machine.stream, exact_model.list(), {.dtype = DType::fp32});
  exact.initialize(42);
  const std::vector<double> numbers = to_doubles(machine.stream, exact.values());
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    Model model;
    FlatLayout layout(machine.stream, model.list(), {.dtype = dtype});
    layout.initialize(42);
    EXPECT_EQ(to_doubles(machine.stream, layout.master()), numbers);
    EXPECT_EQ(to_bytes(machine.stream, layout.values()),
              to_bytes(machine.stream, to_device(machine.stream, dtype, numbers)));
  }
  for (std::int64_t i = 0; i < kElements; ++i) {
    EXPECT_TRUE(is_used(i) || numbers[i] == 0) << i;
  }
  EXPECT_NE(numbers[0], 0);
  EXPECT_EQ(numbers[256 + 129], 1);
  EXPECT_NE(numbers[640 + 255], 0);
}

TEST(FlatLayout, InitialNumbersAreThoseOfInitialize) {
  Machine machine(DeviceKind::cpu);
  Model model;
  FlatLayout layout(machine.stream, model.list(), {.dtype = DType::fp64});
  EXPECT_EQ(layout.grads().dtype(), DType::fp64);
  layout.initialize(7);
  const std::vector<double> before = to_doubles(machine.stream, model.table.value);
  initialize(model.table, 7, machine.stream);
  EXPECT_EQ(to_doubles(machine.stream, model.table.value), before);
}

TEST(FlatLayout, FullPrecisionValuesAreTheMasterWeights) {
  Machine machine(DeviceKind::cpu);
  Model model;
  const FlatLayout layout(machine.stream, model.list(), {.dtype = DType::fp32});
  EXPECT_EQ(layout.master().data(), layout.values().data());
  EXPECT_FALSE(layout.shard().value);
  EXPECT_EQ(layout.describe().find("master"), std::string::npos);
}

TEST(FlatLayout, ClearsGradientsNobodyWrote) {
  Machine machine(DeviceKind::cpu);
  Model model;
  FlatLayout layout(machine.stream, model.list(), {});
  for (Parameter* parameter : model.list()) {
    parameter->grad_written = true;
    machine.stream.fill(parameter->grad.data(), 1, parameter->grad.bytes());
  }
  layout.begin_accumulation();
  for (const Parameter* parameter : model.list()) {
    EXPECT_FALSE(parameter->grad_written);
  }
  model.bias.grad_written = true;
  layout.finish_accumulation();
  EXPECT_EQ(to_doubles(machine.stream, model.matrix.grad), std::vector<double>(256, 0.0));
  EXPECT_NE(to_doubles(machine.stream, model.bias.grad), std::vector<double>(130, 0.0));
}

// A gradient for every parameter element, and training steps with them.
void train(Stream& stream, const ParameterList& parameters, Optimizer& optimizer) {
  for (int step = 0; step < 3; ++step) {
    for (const Parameter* parameter : parameters) {
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < parameter->grad.numel(); ++i) {
        numbers.push_back(std::sin(static_cast<double>(i * (step + 1))));
      }
      const Tensor grad = to_device(stream, parameter->grad.dtype(), numbers);
      stream.copy(parameter->grad.data(), grad.data(), grad.bytes());
      stream.synchronize();
    }
    optimizer.step({}, 1);
  }
  stream.synchronize();
}

OptimizerOptions simple_options() {
  OptimizerOptions options;
  options.clip = 0;
  options.schedule = {.learning_rate = 0.01, .decay_style = DecayStyle::constant};
  return options;
}

class FlatLayoutTraining : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, FlatLayoutTraining, every_device(), device_label);

TEST_P(FlatLayoutTraining, GapsStayZeroAndOnlyDecayingWeightsDecay) {
  Machine machine(GetParam());
  Model model;
  FlatLayout layout(machine.stream, model.list(), {.dtype = DType::bf16});
  layout.initialize(1);
  OptimizerOptions options = simple_options();
  options.schedule.weight_decay = 0.5;
  Optimizer optimizer(machine.stream, options, {layout.shard()});
  optimizer.step({}, 1);  // zero gradients: decay alone
  EXPECT_EQ(to_doubles(machine.stream, model.bias.value), std::vector<double>(130, 1.0));
  Model fresh_model;
  FlatLayout fresh(machine.stream, fresh_model.list(), {.dtype = DType::bf16});
  fresh.initialize(1);
  const auto decayed = to_doubles(machine.stream, layout.master());
  const auto initial = to_doubles(machine.stream, fresh.master());
  for (const std::int64_t i : {0, 132, 640, 895}) {
    EXPECT_NEAR(decayed[i], initial[i] * (1 - 0.01 * 0.5), 1e-7 * std::abs(initial[i]));
  }
  train(machine.stream, model.list(), optimizer);
  const auto values = to_doubles(machine.stream, layout.values());
  for (std::int64_t i = 0; i < kElements; ++i) {
    const bool padding = 7 * 19 <= i && i < 8 * 19;  // has a gradient in this test
    EXPECT_TRUE(is_used(i) || padding || values[i] == 0) << i;
  }
}

// Three shards, each with its own layout and optimizer, give the values of one.
TEST_P(FlatLayoutTraining, ShardsUpdateTheirRangeOnly) {
  Machine machine(GetParam());
  Model model;
  FlatLayout whole(machine.stream, model.list(), {.dtype = DType::bf16, .num_shards = 3});
  EXPECT_EQ(whole.num_elements(), 9 * kUnitSize);
  const std::int64_t size = 3 * kUnitSize;
  EXPECT_EQ(whole.master().numel(), size);
  Model plain_model;
  FlatLayout plain(machine.stream, plain_model.list(), {.dtype = DType::bf16});
  plain.initialize(9);
  Optimizer reference(machine.stream, simple_options(), {plain.shard()});
  train(machine.stream, plain_model.list(), reference);
  std::vector<double> expected = to_doubles(machine.stream, plain.master());
  expected.resize(static_cast<std::size_t>(whole.num_elements()), 0.0);
  for (int shard = 0; shard < 3; ++shard) {
    Model part_model;
    FlatLayout part(machine.stream, part_model.list(),
                    {.dtype = DType::bf16, .num_shards = 3, .shard = shard});
    part.initialize(9);
    Optimizer optimizer(machine.stream, simple_options(), {part.shard()});
    train(machine.stream, part_model.list(), optimizer);
    const auto begin = expected.begin() + part.shard_begin();
    EXPECT_EQ(to_doubles(machine.stream, part.master()), std::vector<double>(begin, begin + size))
        << "shard " << shard;
  }
}

TEST(FlatLayout, ReportsItsMemory) {
  Machine machine(DeviceKind::cpu);
  Parameter large = make_parameter("large", Box::whole({1024, 1024}), {}, true);
  const FlatLayout layout(machine.stream, {&large}, {.dtype = DType::bf16});
  const std::string text = layout.describe();
  EXPECT_NE(text.find("1 parameters, 1048576 elements"), std::string::npos) << text;
  EXPECT_NE(text.find("2.00 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("4.00 MiB"), std::string::npos) << text;
}

TEST(FlatLayout, RefusesWhatCannotBe) {
  Machine machine(DeviceKind::cpu);
  Model model;
  EXPECT_THROW(FlatLayout(machine.stream, model.list(), {.dtype = DType::int32}), Error);
  EXPECT_THROW(FlatLayout(machine.stream, model.list(), {.num_shards = 2, .shard = 2}), Error);
  Model other;
  EXPECT_THROW(FlatLayout(machine.stream, {&model.bias, &other.bias}, {}), Error);
}

}  // namespace
}  // namespace bloomery::testing
