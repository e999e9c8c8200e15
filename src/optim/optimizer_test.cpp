#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "comm/threads.h"
#include "harness/device_test.h"
#include "ops/optimizer/units.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kCount = 5 * kUnitSize - 21;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> drawn(const char* name, std::int64_t count) {
  const RandomKey key = random_key(5, name);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(random_normal(key, static_cast<std::uint64_t>(i)));
  }
  return numbers;
}

FlatShard make_shard(Stream& stream, DType dtype, std::int64_t count = kCount,
                     std::uint8_t flags = kUnitDecays) {
  FlatShard shard{
      .master = to_device(stream, accumulation_dtype(dtype), drawn("master", count)),
      .grad = to_device(stream, accumulation_dtype(dtype), drawn("grad", count)),
      .unit_flags = Tensor::from_host(stream, std::vector<std::uint8_t>(num_units(count), flags),
                                      {num_units(count)})};
  if (dtype != accumulation_dtype(dtype)) {
    shard.form = WeightForm::master;
    shard.value = to_device(stream, dtype, drawn("master", count));
  }
  return shard;
}

void set_grad(Stream& stream, const FlatShard& shard, const std::vector<double>& numbers) {
  const Tensor grad = to_device(stream, shard.grad.dtype(), numbers);
  stream.copy(shard.grad.data(), grad.data(), grad.bytes());
}

std::vector<std::vector<unsigned char>> bits(Stream& stream, const FlatShard& shard) {
  std::vector<std::vector<unsigned char>> all;
  std::vector<Tensor> tensors = shard.state;
  tensors.push_back(shard.master);
  if (shard.form == WeightForm::master) {
    tensors.push_back(shard.value);
  }
  for (const Tensor& tensor : tensors) {
    all.push_back(to_bytes(stream, tensor));
  }
  return all;
}

OptimizerOptions constant_rate(double rate = 0.01) {
  OptimizerOptions options;
  options.schedule = {.learning_rate = rate, .decay_style = DecayStyle::constant};
  return options;
}

class OptimizerTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, OptimizerTest, every_device(), device_label);

TEST_P(OptimizerTest, OverflowChangesNothingAndTheNextStepDoes) {
  Machine machine(GetParam());
  OptimizerOptions options;
  options.schedule = {.learning_rate = 0.1, .train_length = 100, .warmup_length = 10};
  options.loss_scale = {.dynamic = true, .initial = 1024, .hysteresis = 1};
  Optimizer optimizer(machine.stream, options, {make_shard(machine.stream, DType::fp16)});
  const FlatShard& shard = optimizer.shards()[0];
  optimizer.step({}, 4);
  const auto before = bits(machine.stream, shard);
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    std::vector<double> grad = drawn("grad", kCount);
    grad.back() = bad;
    set_grad(machine.stream, shard, grad);
    optimizer.step({}, 4);
    EXPECT_EQ(bits(machine.stream, shard), before);
  }
  const StepReport skipped = optimizer.report(0);
  EXPECT_TRUE(skipped.skipped);
  EXPECT_EQ(skipped.num_steps, 1);
  EXPECT_EQ(skipped.num_samples, 4);
  EXPECT_EQ(skipped.num_skipped, 3);
  EXPECT_EQ(skipped.loss_scale, 128);
  EXPECT_DOUBLE_EQ(skipped.learning_rate, 0.04);
  EXPECT_DOUBLE_EQ(skipped.next_learning_rate, 0.04);

  set_grad(machine.stream, shard, drawn("grad", kCount));
  optimizer.step({}, 4);
  EXPECT_NE(bits(machine.stream, shard), before);
  EXPECT_FALSE(optimizer.report(0).skipped);
  EXPECT_EQ(optimizer.report(0).num_samples, 8);
  EXPECT_DOUBLE_EQ(optimizer.report(0).next_learning_rate, 0.08);
}

// Megatron's rules, written out with its names for the state.
struct SimulatedScaler {
  float scale;
  int growth_tracker = 0, hysteresis_tracker;
  const LossScaleOptions& options;

  explicit SimulatedScaler(const LossScaleOptions& o)
      : scale(static_cast<float>(o.initial)),
        hysteresis_tracker(static_cast<int>(o.hysteresis)),
        options(o) {}

  void update(bool found_inf) {
    if (found_inf) {
      growth_tracker = 0;
      if (--hysteresis_tracker <= 0) {
        scale = std::max(scale * 0.5f, static_cast<float>(options.minimum));
      }
      return;
    }
    if (++growth_tracker == options.window) {
      growth_tracker = 0;
      hysteresis_tracker = static_cast<int>(options.hysteresis);
      scale *= 2.0f;
    }
  }
};

TEST_P(OptimizerTest, DynamicLossScaleFollowsMegatron) {
  Machine machine(GetParam());
  OptimizerOptions options = constant_rate();
  options.loss_scale = {.dynamic = true, .initial = 64, .minimum = 2, .window = 5, .hysteresis = 3};
  Optimizer optimizer(machine.stream, options, {make_shard(machine.stream, DType::fp16, 8)});
  SimulatedScaler simulated(options.loss_scale);
  double lowest = 64, highest = 64;
  for (std::uint64_t step = 0; step < 240; ++step) {
    // Overflows are common in the first third, rare in the second, mixed in the last.
    const double chance = step < 80 ? 0.6 : step < 160 ? 0.02 : 0.2;
    const bool overflow = random_uniform(random_key(3, "overflow"), step) < chance;
    set_grad(machine.stream, optimizer.shards()[0],
             std::vector<double>(8, overflow ? kInfinity : 1.0));
    EXPECT_EQ(optimizer.loss_scale().to_host<float>(machine.stream)[0], simulated.scale);
    optimizer.step({}, 1);
    simulated.update(overflow);
    ASSERT_EQ(optimizer.report(0).loss_scale, simulated.scale) << "step " << step;
    ASSERT_EQ(optimizer.report(0).skipped, overflow);
    lowest = std::min(lowest, optimizer.report(0).loss_scale);
    highest = std::max(highest, optimizer.report(0).loss_scale);
  }
  EXPECT_EQ(lowest, 2);  // the trajectory reached the minimum and came back
  EXPECT_GT(highest, 64);
}

// DeepSpeed's DynamicLossScaler, written out with its names, where it differs from Megatron's.
TEST(LossScale, ConsecutiveHysteresisAndTheSmallestScaleFollowDeepspeed) {
  const LossScaleOptions options{.dynamic = true,
                                 .initial = 8,
                                 .minimum = 1,
                                 .window = 1000,
                                 .hysteresis = 3,
                                 .consecutive_hysteresis = true};
  LossScale state = initial_loss_scale(options);
  double cur_scale = 8;
  std::int64_t cur_hysteresis = 3, times_exhausted = 0;
  for (std::uint64_t step = 0; step < 200; ++step) {
    const bool overflow = random_uniform(random_key(5, "overflow"), step) < 0.7;
    bool raises = false;
    if (overflow && cur_hysteresis == 1) {
      raises = cur_scale == options.minimum;
      cur_scale = std::max(cur_scale / 2, options.minimum);
    } else if (overflow) {
      --cur_hysteresis;
    } else {
      cur_hysteresis = 3;
    }
    ASSERT_EQ(update_loss_scale(options, state, overflow), !raises) << step;
    ASSERT_EQ(state.scale, cur_scale) << step;
    times_exhausted += raises ? 1 : 0;
  }
  EXPECT_GT(times_exhausted, 0);
}

TEST_P(OptimizerTest, NormIsOfTheUnscaledGradientBeforeClipping) {
  Machine machine(GetParam());
  for (const double clip : {0.0, 0.05, 1e6}) {
    OptimizerOptions options = constant_rate();
    options.clip = clip;
    options.loss_scale.initial = 256;
    Optimizer optimizer(machine.stream, options, {make_shard(machine.stream, DType::bf16)});
    double norm = 0;
    for (const double x : to_doubles(machine.stream, optimizer.shards()[0].grad)) {
      norm += x * x / (256.0 * 256.0);
    }
    norm = std::sqrt(norm);
    optimizer.step({}, 1);
    EXPECT_NEAR(optimizer.report(0).grad_norm, norm, 1e-12 * norm);
    EXPECT_NEAR(optimizer.report(0).clip_coefficient, clip == 0.05 ? 0.05 / (norm + 1e-6) : 1.0,
                1e-12);
  }
}

// Two shards with one optimizer do what one shard does, bit for bit.
TEST_P(OptimizerTest, ShardsAddUpToTheWhole) {
  Machine machine(GetParam());
  const std::int64_t count = 300 * kUnitSize, cut = 129 * kUnitSize;
  const FlatShard whole = make_shard(machine.stream, DType::bf16, count);
  const FlatShard copy = make_shard(machine.stream, DType::bf16, count);
  std::vector<FlatShard> parts;
  for (const auto& [begin, end] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, count}}) {
    const Shape shape{end - begin};
    parts.push_back(
        {.form = WeightForm::master,
         .value = copy.value.range(begin, shape),
         .master = copy.master.range(begin, shape),
         .grad = copy.grad.range(begin, shape),
         .unit_flags = copy.unit_flags.range(begin / kUnitSize, {(end - begin) / kUnitSize})});
  }
  OptimizerOptions options = constant_rate();
  options.clip = 0;
  Optimizer one(machine.stream, options, {whole}), two(machine.stream, options, parts);
  for (int step = 0; step < 3; ++step) {
    one.step({}, 1);
    two.step({}, 1);
    EXPECT_NEAR(one.report(0).grad_norm, two.report(0).grad_norm, 1e-12 * one.report(0).grad_norm);
  }
  EXPECT_EQ(to_bytes(machine.stream, whole.master), to_bytes(machine.stream, copy.master));
  EXPECT_EQ(to_bytes(machine.stream, whole.value), to_bytes(machine.stream, copy.value));
}

// Three ranks hold the same parameter and one of them counts it; each has one of its own.
TEST_P(OptimizerTest, RanksCountSharedElementsOnceAndSkipTogether) {
  constexpr int kRanks = 3;
  double square = 0;
  for (const double x : drawn("grad", kCount)) {
    square += static_cast<float>(x) * static_cast<double>(static_cast<float>(x));
  }
  const double expected = std::sqrt(square * (kRanks + 1));
  run_ranks(kRanks, [&](int rank, std::unique_ptr<Communicator> world) {
    Machine machine(GetParam());
    const std::uint8_t shared_flag = rank == 1 ? 0 : kUnitUncounted;
    Optimizer optimizer(machine.stream, constant_rate(),
                        {make_shard(machine.stream, DType::bf16, kCount, shared_flag),
                         make_shard(machine.stream, DType::bf16)});
    const std::vector<Communicator*> groups = {world.get()};
    optimizer.step(groups, 1);
    EXPECT_NEAR(optimizer.report(0).grad_norm, expected, 1e-12 * expected);

    const auto before = bits(machine.stream, optimizer.shards()[0]);
    if (rank == 2) {
      set_grad(machine.stream, optimizer.shards()[1], std::vector<double>(kCount, kInfinity));
    }
    optimizer.step(groups, 1);
    EXPECT_TRUE(optimizer.report(0).skipped);
    EXPECT_EQ(bits(machine.stream, optimizer.shards()[0]), before);
  });
}

TEST_P(OptimizerTest, ReportsArriveAStepLater) {
  Machine machine(GetParam());
  Optimizer optimizer(machine.stream, constant_rate(), {make_shard(machine.stream, DType::bf16)});
  EXPECT_THROW(optimizer.report(0), Error);
  for (int step = 1; step <= 9; ++step) {
    optimizer.step({}, 10);
    EXPECT_EQ(optimizer.report(0).num_samples, 10 * step);
    if (step > 1) {
      EXPECT_EQ(optimizer.report().num_samples, 10 * (step - 1));
    }
  }
  EXPECT_EQ(optimizer.report(3).num_samples, 60);
  EXPECT_THROW(optimizer.report(4), Error);
}

TEST_P(OptimizerTest, StateContinuesWhereItWasSaved) {
  Machine machine(GetParam());
  OptimizerOptions options;
  options.schedule = {.learning_rate = 0.1, .train_length = 100, .warmup_length = 10};
  options.loss_scale = {.dynamic = true, .initial = 1024, .window = 3};
  Optimizer first(machine.stream, options, {make_shard(machine.stream, DType::bf16)});
  for (int step = 0; step < 4; ++step) {
    first.step({}, 3);
  }
  FlatShard shard = make_shard(machine.stream, DType::bf16);
  const FlatShard& saved = first.shards()[0];
  for (const Tensor& tensor : saved.state) {
    shard.state.push_back(
        to_device(machine.stream, DType::fp32, to_doubles(machine.stream, tensor)));
  }
  shard.master = to_device(machine.stream, DType::fp32, to_doubles(machine.stream, saved.master));
  Optimizer second(machine.stream, options, {shard});
  second.set_state(first.state());
  EXPECT_EQ(second.loss_scale().to_host<float>(machine.stream)[0], 2048);
  first.step({}, 3);
  second.step({}, 3);
  EXPECT_EQ(bits(machine.stream, saved), bits(machine.stream, second.shards()[0]));
}

TEST_P(OptimizerTest, GradScaleDividesTheLossScale) {
  Machine machine(GetParam());
  OptimizerOptions options = constant_rate();
  options.loss_scale.initial = 4096;
  Optimizer optimizer(machine.stream, options, {make_shard(machine.stream, DType::fp16)});
  EXPECT_EQ(optimizer.grad_scale(8).to_host<float>(machine.stream)[0], 512.0f);
  EXPECT_THROW(optimizer.grad_scale(0), Error);
}

TEST(OptimizerErrors, NameTheMistake) {
  Machine machine(DeviceKind::cpu);
  const auto make = [&](const OptimizerOptions& options, const FlatShard& shard) {
    Optimizer optimizer(machine.stream, options, {shard});
  };
  const FlatShard good = make_shard(machine.stream, DType::bf16);
  EXPECT_NO_THROW(make(constant_rate(), good));
  OptimizerOptions options = constant_rate();
  options.rule = Adam{.beta2 = 1.0};
  EXPECT_THROW(make(options, good), Error);
  options = constant_rate();
  options.clip = -1;
  EXPECT_THROW(make(options, good), Error);
  options = constant_rate();
  options.loss_scale = {.dynamic = true, .initial = 1, .minimum = 2};
  EXPECT_THROW(make(options, good), Error);
  options = constant_rate();
  options.schedule.warmup_length = 1;
  EXPECT_THROW(make(options, good), Error);

  FlatShard bad = good;
  bad.grad = Tensor::zeros(machine.stream, DType::fp32, {kCount + 1});
  EXPECT_THROW(make(constant_rate(), bad), Error);
  bad = good;
  bad.unit_flags = Tensor::zeros(machine.stream, DType::uint8, {1});
  EXPECT_THROW(make(constant_rate(), bad), Error);
  bad = good;
  bad.master = Tensor::zeros(machine.stream, DType::bf16, {kCount});
  EXPECT_THROW(make(constant_rate(), bad), Error);
  bad = good;
  bad.state = {Tensor::zeros(machine.stream, DType::fp32, {kCount})};  // Adam has two
  EXPECT_THROW(make(constant_rate(), bad), Error);
  bad = good;
  bad.value = Tensor::zeros(machine.stream, DType::fp32, {kCount});
  EXPECT_THROW(make(constant_rate(), bad), Error);
}

TEST(ScheduleErrors, NameTheMistake) {
  const ScheduleOptions good{.train_length = 10};
  EXPECT_NO_THROW(make_schedule(good));
  ScheduleOptions bad = good;
  bad.warmup_length = 10;
  EXPECT_THROW(make_schedule(bad), Error);
  bad = good;
  bad.warmup_length = 2;
  bad.warmup_fraction = 0.1;
  EXPECT_THROW(make_schedule(bad), Error);
  bad = good;
  bad.min_learning_rate = 1;
  EXPECT_THROW(make_schedule(bad), Error);
  bad = good;
  bad.weight_decay_style = WeightDecayStyle::linear;
  EXPECT_THROW(make_schedule(bad), Error);
  bad = good;
  bad.start_weight_decay = 0.1;
  EXPECT_THROW(make_schedule(bad), Error);
  bad = good;
  bad.weight_decay_style = WeightDecayStyle::cosine;
  bad.start_weight_decay = 0.2;
  bad.end_weight_decay = 0.1;
  EXPECT_THROW(make_schedule(bad), Error);
}

}  // namespace
}  // namespace bloomery::testing
