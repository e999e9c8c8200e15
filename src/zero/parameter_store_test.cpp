#include "zero/parameter_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/threads.h"
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

  Model() { table.local_shape = {8, 19}; }  // one padding row
  ParameterList list() { return {&table, &bias, &gain, &matrix}; }
  // Three blocks; the last uses the table again.
  std::vector<ParameterList> blocks() { return {{&table}, {&bias, &gain}, {&matrix, &table}}; }
};

// In backward order: matrix, gain, bias, table; 256, 1, 130 and 152 elements.
constexpr std::int64_t kFirst[] = {0, 256, 384, 640};
constexpr std::int64_t kElements = 896;

// Whether element i of the flat buffers belongs to the true extent of a parameter.
bool is_used(std::int64_t i) {
  return i <= 256 || (384 <= i && i < 514) || (640 <= i && i < 640 + 7 * 19);
}

struct Stored {
  explicit Stored(Stream& stream, const StoreOptions& options)
      : store(stream, mesh, model.blocks(), options) {}
  Model model;
  Mesh mesh = Mesh::single();
  ParameterStore store;
};

TEST(ParameterStore, IsOneRangeInBackwardOrderOnOneRank) {
  Machine machine(DeviceKind::cpu);
  Stored s(machine.stream, {.dtype = DType::bf16, .sharded = Sharding::of_stage(3)});
  EXPECT_FALSE(s.store.sharded().optimizer) << "there is nobody to share with";
  ASSERT_EQ(s.store.buckets().size(), 1u);
  const std::vector<Place>& places = s.store.buckets()[0].places;
  const ParameterList order = {&s.model.matrix, &s.model.gain, &s.model.bias, &s.model.table};
  ASSERT_EQ(places.size(), 4u);
  const std::vector<FlatShard> shards = s.store.shards();
  ASSERT_EQ(shards.size(), 1u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(places[i].first, kFirst[i]);
    EXPECT_EQ(places[i].parameter, order[i]);
    EXPECT_EQ(order[i]->value.shape(), order[i]->local_shape);
    EXPECT_EQ(order[i]->grad.dtype(), DType::fp32);
    EXPECT_EQ(order[i]->value.data(), shards[0].value.range(kFirst[i], {1}).data());
    EXPECT_EQ(order[i]->grad.data(), shards[0].grad.range(kFirst[i], {1}).data());
  }
  EXPECT_EQ(s.store.num_elements(), kElements);
  EXPECT_EQ(s.store.bytes().total(), static_cast<std::size_t>(kElements) * (2 + 4 + 2));
  const std::vector<std::uint8_t> flags = {1, 1, 0, 0, 0, 1, 1};
  EXPECT_EQ(shards[0].unit_flags.to_host<std::uint8_t>(machine.stream), flags);
}

TEST(ParameterStore, BucketsEndWhereTheyAreFullAndStayOneRange) {
  Machine machine(DeviceKind::cpu);
  Stored s(machine.stream, {.bucket_elements = 400});
  std::vector<std::size_t> sizes;
  for (const Bucket& bucket : s.store.buckets()) {
    sizes.push_back(bucket.places.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 1, 1}));
  EXPECT_EQ(s.store.shards().size(), 1u) << "the optimizer sees one range";
}

TEST(ParameterStore, EachSetOfGradientAxesHasBucketsOfItsOwn) {
  Machine machine(DeviceKind::cpu);
  Model model;
  Mesh mesh = Mesh::single();
  model.gain.grad_axes = kExpertReplicaAxes;
  model.bias.frozen = true;
  const ParameterStore store(machine.stream, mesh, model.blocks(), {});
  ASSERT_EQ(store.buckets().size(), 3u);
  EXPECT_EQ(store.buckets()[0].places.size(), 2u);
  EXPECT_EQ(store.buckets()[1].places[0].parameter, &model.gain);
  EXPECT_EQ(store.buckets()[1].kind.axes, kExpertReplicaAxes);
  EXPECT_TRUE(store.buckets()[2].kind.frozen);
}

TEST(ParameterStore, FrozenParametersHaveValuesAlone) {
  Machine machine(DeviceKind::cpu);
  Model model;
  Mesh mesh = Mesh::single();
  model.matrix.frozen = true;
  ParameterStore store(machine.stream, mesh, model.blocks(), {.dtype = DType::bf16});
  store.initialize(3);
  EXPECT_FALSE(model.matrix.grad);
  EXPECT_EQ(store.num_elements(), kElements - 256);
  EXPECT_EQ(store.shards()[0].numel(), kElements - 256);
  EXPECT_NE(to_doubles(machine.stream, model.matrix.value)[0], 0);
  store.begin_step(1);
  EXPECT_EQ(store.finish_step(), std::vector<std::size_t>{0});
  int frozen = 0;
  for (const ParameterStore::Part& part : store.parts()) {
    frozen += part.shard ? 0 : 1;
    EXPECT_EQ(part.weights.dtype(), part.shard ? DType::fp32 : DType::bf16);
  }
  EXPECT_EQ(frozen, 1);
}

class ParameterStoreInit : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ParameterStoreInit, every_device(), device_label);

TEST_P(ParameterStoreInit, KeepsUnroundedNumbersInTheMasterWeights) {
  Machine machine(GetParam());
  Stored exact(machine.stream, {.dtype = DType::fp32});
  exact.store.initialize(42);
  const auto numbers = to_doubles(machine.stream, exact.store.shards()[0].master);
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    Stored s(machine.stream, {.dtype = dtype});
    s.store.initialize(42);
    const FlatShard shard = s.store.shards()[0];
    EXPECT_EQ(to_doubles(machine.stream, weights_of(shard, machine.stream)), numbers);
    EXPECT_EQ(to_bytes(machine.stream, shard.value),
              to_bytes(machine.stream, to_device(machine.stream, dtype, numbers)));
  }
  for (std::int64_t i = 0; i < kElements; ++i) {
    EXPECT_TRUE(is_used(i) || numbers[static_cast<std::size_t>(i)] == 0) << i;
  }
  EXPECT_NE(numbers[0], 0);
  EXPECT_EQ(numbers[384 + 129], 1);
  EXPECT_NE(numbers[640 + 132], 0);
}

TEST(ParameterStore, InitialNumbersAreThoseOfInitialize) {
  Machine machine(DeviceKind::cpu);
  Stored s(machine.stream, {.dtype = DType::fp64});
  EXPECT_EQ(s.model.table.grad.dtype(), DType::fp64);
  s.store.initialize(7);
  const std::vector<double> before = to_doubles(machine.stream, s.model.table.value);
  initialize(s.model.table, 7, machine.stream);
  EXPECT_EQ(to_doubles(machine.stream, s.model.table.value), before);
}

TEST(ParameterStore, FullPrecisionValuesAreTheMasterWeights) {
  Machine machine(DeviceKind::cpu);
  Stored s(machine.stream, {.dtype = DType::fp32});
  const FlatShard shard = s.store.shards()[0];
  EXPECT_EQ(shard.master.data(), s.model.matrix.value.data());
  EXPECT_FALSE(shard.value);
}

// A contribution to each parameter's gradient, as a tape makes them.
void contribute(ParameterStore& store, Parameter& parameter, Stream& stream, float number) {
  store.prepare_grad(parameter);
  const float before = parameter.grad_written ? parameter.grad.to_host<float>(stream)[0] : 0;
  const auto count = static_cast<std::size_t>(parameter.grad.numel());
  const Tensor numbers =
      Tensor::from_host(stream, std::vector<float>(count, before + number), parameter.grad.shape());
  stream.copy(parameter.grad.data(), numbers.data(), numbers.bytes());
  parameter.grad_written = true;
}

TEST(ParameterStore, CountsContributionsPerParameterAndMicroBatch) {
  Machine machine(DeviceKind::cpu);
  Stored s(machine.stream, {.bucket_elements = 400});
  Model& m = s.model;
  m.table.uses = 2;
  ParameterStore store(machine.stream, s.mesh, m.blocks(), {.bucket_elements = 400});
  const auto told = [&](Parameter& p, std::int64_t micro_batch) {
    return store.contributed(p, micro_batch);
  };
  store.begin_step(2);
  // The second micro-batch begins before the first has come back, as in a pipeline.
  EXPECT_EQ(told(m.table, 0), std::nullopt);
  EXPECT_EQ(told(m.matrix, 0), std::nullopt);
  EXPECT_EQ(told(m.table, 1), std::nullopt);
  EXPECT_EQ(told(m.matrix, 1), std::nullopt);
  EXPECT_EQ(told(m.gain, 1), std::nullopt);
  EXPECT_EQ(told(m.gain, 0), 0u) << "matrix and gain, both micro-batches";
  EXPECT_EQ(told(m.table, 0), std::nullopt);
  EXPECT_EQ(told(m.table, 1), 2u) << "its second use";
  EXPECT_THROW(told(m.table, 1), Error);
  EXPECT_EQ(told(m.bias, 0), std::nullopt);
  EXPECT_EQ(store.finish_step(), std::vector<std::size_t>{1});
}

TEST(ParameterStore, ClearsGradientsNobodyWrote) {
  Machine machine(DeviceKind::cpu);
  Stored s(machine.stream, {});
  for (Parameter* parameter : s.model.list()) {
    contribute(s.store, *parameter, machine.stream, 1);
  }
  s.store.begin_step(1);
  for (const Parameter* parameter : s.model.list()) {
    EXPECT_FALSE(parameter->grad_written);
  }
  s.model.bias.grad_written = true;
  s.store.finish_step();
  EXPECT_EQ(to_doubles(machine.stream, s.model.matrix.grad), std::vector<double>(256, 0.0));
  EXPECT_EQ(to_doubles(machine.stream, s.model.bias.grad), std::vector<double>(130, 1.0));
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

class ParameterStoreTraining : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ParameterStoreTraining, every_device(), device_label);

TEST_P(ParameterStoreTraining, GapsStayZeroAndOnlyDecayingWeightsDecay) {
  Machine machine(GetParam());
  Stored s(machine.stream, {.dtype = DType::bf16});
  s.store.initialize(1);
  const FlatShard shard = s.store.shards()[0];
  const auto initial = to_doubles(machine.stream, weights_of(shard, machine.stream));
  OptimizerOptions options = simple_options();
  options.schedule.weight_decay = 0.5;
  Optimizer optimizer(machine.stream, options, s.store.shards());
  optimizer.step({}, 1);  // zero gradients: decay alone
  EXPECT_EQ(to_doubles(machine.stream, s.model.bias.value), std::vector<double>(130, 1.0));
  const auto decayed = to_doubles(machine.stream, weights_of(shard, machine.stream));
  for (const std::int64_t i : {0, 255, 640, 772}) {
    EXPECT_NEAR(decayed[i], initial[i] * (1 - 0.01 * 0.5), 1e-7 * std::abs(initial[i]));
  }
  train(machine.stream, s.model.list(), optimizer);
  const auto values = to_doubles(machine.stream, shard.value);
  for (std::int64_t i = 0; i < kElements; ++i) {
    const bool padding = 640 + 7 * 19 <= i && i < 640 + 8 * 19;  // has a gradient in this test
    EXPECT_TRUE(is_used(i) || padding || values[i] == 0) << i;
  }
}

TEST(ParameterStore, RefusesWhatCannotBe) {
  Machine machine(DeviceKind::cpu);
  Model model, other;
  Mesh mesh = Mesh::single();
  const auto make = [&](const std::vector<ParameterList>& blocks, const StoreOptions& options) {
    ParameterStore store(machine.stream, mesh, blocks, options);
  };
  EXPECT_THROW(make(model.blocks(), {.dtype = DType::int32}), Error);
  EXPECT_THROW(make(model.blocks(), {.sharded = {.values = true}}), Error);
  EXPECT_THROW(make({{&model.bias, &other.bias}}, {}), Error);
}

}  // namespace
}  // namespace bloomery::testing
