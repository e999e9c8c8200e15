#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "harness/device_test.h"
#include "harness/op_harness.h"
#include "ops/optimizer/gradient_norm.h"
#include "ops/optimizer/update.h"

namespace bloomery::testing {
namespace {

const std::vector<std::int64_t> kSizes = {1, 3, 127, 128, 129, 1000, 4096, 16384, 16385, 50021};

std::vector<double> drawn(const char* name, std::int64_t count, double scale) {
  const RandomKey key = random_key(11, name);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(
        static_cast<float>(scale * random_normal(key, static_cast<std::uint64_t>(i))));
  }
  return numbers;
}

// Units decay and count in turns that do not share a period.
std::vector<std::uint8_t> mixed_flags(std::int64_t count) {
  std::vector<std::uint8_t> flags;
  for (std::int64_t unit = 0; unit < num_units(count); ++unit) {
    flags.push_back(static_cast<std::uint8_t>((unit % 2 == 0 ? kUnitDecays : 0) |
                                              (unit % 3 == 2 ? kUnitUncounted : 0)));
  }
  return flags;
}

Tensor upload_flags(Stream& stream, const std::vector<std::uint8_t>& flags) {
  return Tensor::from_host(stream, flags, {static_cast<std::int64_t>(flags.size())});
}

double squared_norm(Machine& machine, const Tensor& grad, const Tensor& flags) {
  Tensor partials = Tensor::empty(machine.stream, DType::fp64, {num_norm_partials(grad.numel())});
  Tensor sum = Tensor::empty(machine.stream, DType::fp64, {1});
  launch(machine.stream,
         SquaredNormPartials{.grad = grad, .unit_flags = flags, .partials = partials});
  launch(machine.stream, SumPartials{.partials = partials, .sum = sum});
  return sum.to_host<double>(machine.stream)[0];
}

class GradientNorm : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, GradientNorm, every_device(), device_label);

TEST_P(GradientNorm, CountsUnitsOnceAtOddSizes) {
  Machine machine(GetParam());
  for (const std::int64_t count : kSizes) {
    const std::vector<double> numbers = drawn("grad", count, 3.0);
    const std::vector<std::uint8_t> flags = mixed_flags(count);
    long double expected = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if ((flags[i / kUnitSize] & kUnitUncounted) == 0) {
        expected += static_cast<long double>(numbers[i]) * numbers[i];
      }
    }
    const double sum = squared_norm(machine, to_device(machine.stream, DType::fp32, numbers),
                                    upload_flags(machine.stream, flags));
    EXPECT_NEAR(sum, static_cast<double>(expected), 1e-13 * static_cast<double>(expected))
        << count << " elements";
  }
}

// Every bf16 number is one of fp32.
TEST_P(GradientNorm, OfBf16IsThatOfTheSameNumbers) {
  Machine machine(GetParam());
  for (const std::int64_t count : kSizes) {
    const Tensor flags = upload_flags(machine.stream, mixed_flags(count));
    const Tensor narrow = to_device(machine.stream, DType::bf16, drawn("grad", count, 3.0));
    const Tensor wide = to_device(machine.stream, DType::fp32, to_doubles(machine.stream, narrow));
    EXPECT_EQ(squared_norm(machine, narrow, flags), squared_norm(machine, wide, flags)) << count;
  }
}

TEST_P(GradientNorm, IsFiniteForEveryFiniteGradient) {
  Machine machine(GetParam());
  const double largest = std::numeric_limits<float>::max();
  const Tensor grad = to_device(machine.stream, DType::fp32, std::vector<double>(5000, -largest));
  const Tensor flags = upload_flags(machine.stream, std::vector<std::uint8_t>(num_units(5000), 1));
  const double sum = squared_norm(machine, grad, flags);
  EXPECT_NEAR(sum / (5000 * largest * largest), 1.0, 1e-12);
}

TEST_P(GradientNorm, IsNotFiniteForOneBadElementAnywhere) {
  Machine machine(GetParam());
  const std::int64_t count = 20011;
  const Tensor flags = upload_flags(machine.stream, mixed_flags(count));
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Of these, 300 lies in a unit that another rank counts, and 20010 in a partial unit.
  for (const std::int64_t place : {0, 300, 16383, 16384, 20010}) {
    for (const double bad : {infinity, -infinity, nan}) {
      std::vector<double> numbers = drawn("grad", count, 1.0);
      numbers[place] = bad;
      const double sum =
          squared_norm(machine, to_device(machine.stream, DType::fp32, numbers), flags);
      EXPECT_FALSE(std::isfinite(sum)) << bad << " at " << place;
    }
  }
}

TEST_P(GradientNorm, HasTheSameBitsTwiceAndWithOtherThreads) {
  const std::vector<double> numbers = drawn("grad", 100003, 1.0);
  std::vector<double> sums;
  for (const int num_threads : {1, 3, 3}) {
    Machine machine(GetParam(), num_threads);
    sums.push_back(squared_norm(machine, to_device(machine.stream, DType::fp32, numbers),
                                upload_flags(machine.stream, mixed_flags(100003))));
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[1], sums[2]);
}

enum class Rule { adam, momentum, lion };
constexpr Rule kRules[] = {Rule::adam, Rule::momentum, Rule::lion};

constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8;

// The buffers of an update in fp64, and the update as its definition reads.
struct Weights {
  std::vector<double> grad, master, moment1, moment2;
  std::vector<std::uint8_t> flags;

  static Weights drawn_for(std::int64_t count) {
    Weights weights{drawn("grad", count, 1.0), drawn("master", count, 0.1),
                    drawn("moment1", count, 0.1), drawn("moment2", count, 0.1), mixed_flags(count)};
    for (double& v : weights.moment2) {
      v = static_cast<float>(v * v);
    }
    return weights;
  }

  void update(Rule rule, const UpdateScalars& s) {
    for (std::size_t i = 0; i < master.size(); ++i) {
      const bool decays = (flags[i / kUnitSize] & kUnitDecays) != 0;
      const double g = s.grad_factor * grad[i] + (decays ? s.l2 * master[i] : 0.0);
      double direction = 0;
      if (rule == Rule::adam) {
        moment1[i] = kBeta1 * moment1[i] + (1 - kBeta1) * g;
        moment2[i] = kBeta2 * moment2[i] + (1 - kBeta2) * g * g;
        direction = moment1[i] / (std::sqrt(moment2[i]) * s.inverse_sqrt_bias2 + kEpsilon);
      } else if (rule == Rule::momentum) {
        moment1[i] = kBeta1 * moment1[i] + g;
        direction = moment1[i];
      } else {
        const double average = kBeta1 * moment1[i] + (1 - kBeta1) * g;
        direction = average > 0 ? 1 : average < 0 ? -1 : 0;
        moment1[i] = kBeta2 * moment1[i] + (1 - kBeta2) * g;
      }
      master[i] = (decays ? s.decay_factor : 1.0) * master[i] - s.step_size * direction;
    }
  }
};

struct DeviceWeights {
  WeightForm form = WeightForm::exact;
  Tensor grad, master, moment1, moment2, value, low, flags, scalars;

  DeviceWeights(Stream& stream, const Weights& from, DType dtype, const UpdateScalars& s) {
    const DType real = accumulation_dtype(dtype);
    grad = to_device(stream, real, from.grad);
    master = to_device(stream, real, from.master);
    moment1 = to_device(stream, real, from.moment1);
    moment2 = to_device(stream, real, from.moment2);
    if (dtype != real) {
      form = WeightForm::master;
      value = Tensor::empty(stream, dtype, master.shape());
    }
    flags = upload_flags(stream, from.flags);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&s);
    scalars = upload_flags(stream, {bytes, bytes + sizeof s});
  }

  void update(Stream& stream, Rule rule) {
    OptimizerRule chosen = Adam{.beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon};
    if (rule == Rule::momentum) {
      chosen = Momentum{.momentum = kBeta1};
    } else if (rule == Rule::lion) {
      chosen = Lion{.beta1 = kBeta1, .beta2 = kBeta2};
    }
    launch(stream, Update{.buffers = {.grad = grad,
                                      .form = form,
                                      .master = master,
                                      .value = value,
                                      .low = low,
                                      .state = {moment1, moment2},
                                      .unit_flags = flags},
                          .rule = chosen,
                          .scalars = static_cast<const UpdateScalars*>(scalars.data())});
  }

  // The weights become halves.
  void split(Stream& stream) {
    value = Tensor::empty(stream, DType::bf16, master.shape());
    low = Tensor::empty(stream, DType::uint8, {kLowHalfBytes * master.numel()});
    launch(stream, SplitWeights{.x = master, .value = value, .low = low});
    master = {};
    form = WeightForm::split;
  }
  void join(Stream& stream) {
    master = Tensor::empty(stream, DType::fp32, value.shape());
    launch(stream, JoinWeights{.value = value, .low = low, .y = master});
  }

  std::vector<std::vector<unsigned char>> bits(Stream& stream) const {
    std::vector<std::vector<unsigned char>> all;
    for (const Tensor& tensor : {master, moment1, moment2, value}) {
      if (tensor) {
        all.push_back(to_bytes(stream, tensor));
      }
    }
    return all;
  }
};

UpdateScalars some_scalars() {
  return {.grad_factor = 0.37,
          .step_size = 0.02,
          .inverse_sqrt_bias2 = 1.7,
          .decay_factor = 0.97,
          .l2 = 0.05};
}

class UpdateKernels : public DeviceTest {
 protected:
  std::vector<DType> dtypes() const {
    std::vector<DType> all = {DType::fp32, DType::bf16, DType::fp16};
    if (GetParam() == DeviceKind::cpu) {
      all.push_back(DType::fp64);
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, UpdateKernels, every_device(), device_label);

TEST_P(UpdateKernels, FollowTheirDefinitionAtOddSizes) {
  Machine machine(GetParam());
  for (const Rule rule : kRules) {
    for (const DType dtype : dtypes()) {
      const double tolerance = dtype == DType::fp64 ? 1e-14 : 3e-7;
      for (const std::int64_t count : kSizes) {
        Weights expected = Weights::drawn_for(count);
        DeviceWeights weights(machine.stream, expected, dtype, some_scalars());
        expected.update(rule, some_scalars());
        weights.update(machine.stream, rule);
        const auto error = [&](const Tensor& tensor, const std::vector<double>& numbers) {
          return relative_error(to_doubles(machine.stream, tensor), numbers);
        };
        EXPECT_LE(error(weights.master, expected.master), tolerance) << dtype << ' ' << count;
        EXPECT_LE(error(weights.moment1, expected.moment1), tolerance) << dtype << ' ' << count;
        EXPECT_LE(error(weights.moment2, expected.moment2), tolerance) << dtype << ' ' << count;
      }
    }
  }
}

TEST_P(UpdateKernels, TakeGradientsInBf16) {
  Machine machine(GetParam());
  for (const Rule rule : kRules) {
    for (const std::int64_t count : kSizes) {
      const Weights drawn = Weights::drawn_for(count);
      DeviceWeights narrow(machine.stream, drawn, DType::bf16, some_scalars());
      DeviceWeights wide(machine.stream, drawn, DType::bf16, some_scalars());
      narrow.grad = to_device(machine.stream, DType::bf16, drawn.grad);
      wide.grad = to_device(machine.stream, DType::fp32, to_doubles(machine.stream, narrow.grad));
      narrow.update(machine.stream, rule);
      wide.update(machine.stream, rule);
      EXPECT_EQ(narrow.bits(machine.stream), wide.bits(machine.stream)) << count;
    }
  }
}

TEST_P(UpdateKernels, OfHalvesAreThoseOfTheWholeWeights) {
  Machine machine(GetParam());
  for (const Rule rule : kRules) {
    for (const DType grad : {DType::fp32, DType::bf16}) {
      for (const std::int64_t count : kSizes) {
        const Weights drawn = Weights::drawn_for(count);
        DeviceWeights whole(machine.stream, drawn, DType::bf16, some_scalars());
        DeviceWeights halves(machine.stream, drawn, DType::bf16, some_scalars());
        whole.grad = halves.grad = to_device(machine.stream, grad, drawn.grad);
        halves.split(machine.stream);
        for (int step = 0; step < 3; ++step) {
          whole.update(machine.stream, rule);
          halves.update(machine.stream, rule);
        }
        halves.join(machine.stream);
        EXPECT_EQ(halves.bits(machine.stream), whole.bits(machine.stream)) << grad << ' ' << count;
      }
    }
  }
}

// All upper halves with the lower ones at and around what decides rounding.
TEST_P(UpdateKernels, HalvesAreTheNearestBf16AndTheWholeWeight) {
  Machine machine(GetParam());
  std::vector<float> numbers;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0u, 0x1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const auto number = std::bit_cast<float>(upper << 16 | lower);
      if (!std::isnan(number)) {
        numbers.push_back(number);
      }
    }
  }
  numbers.push_back(std::numeric_limits<float>::quiet_NaN());
  const auto count = static_cast<std::int64_t>(numbers.size());
  DeviceWeights weights(machine.stream, Weights{}, DType::fp32, some_scalars());
  weights.master = Tensor::from_host(machine.stream, numbers, {count});
  weights.split(machine.stream);
  weights.join(machine.stream);
  const auto joined = weights.master.to_host<float>(machine.stream);
  const auto values = weights.value.to_host<bfloat16>(machine.stream);
  EXPECT_TRUE(std::isnan(joined.back()) && std::isnan(static_cast<float>(values.back())));
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(joined[i]), std::bit_cast<std::uint32_t>(numbers[i]));
    const double exact = numbers[i], cast = static_cast<float>(bfloat16(numbers[i]));
    const double value = static_cast<float>(values[i]);
    ASSERT_TRUE(value == cast || std::abs(value - exact) == std::abs(cast - exact)) << exact;
  }
}

TEST_P(UpdateKernels, RoundTheNewWeightsToTheComputeDtype) {
  Machine machine(GetParam());
  for (const Rule rule : kRules) {
    for (const DType dtype : {DType::bf16, DType::fp16}) {
      for (const std::int64_t count : kSizes) {
        DeviceWeights weights(machine.stream, Weights::drawn_for(count), dtype, some_scalars());
        const std::vector<unsigned char> before = to_bytes(machine.stream, weights.master);
        weights.update(machine.stream, rule);
        EXPECT_NE(to_bytes(machine.stream, weights.master), before);
        Tensor rounded =
            to_device(machine.stream, dtype, to_doubles(machine.stream, weights.master));
        if (dtype == DType::bf16) {  // in ties other than casts
          launch(machine.stream, SplitWeights{weights.master, rounded, {}});
        }
        EXPECT_EQ(to_bytes(machine.stream, weights.value), to_bytes(machine.stream, rounded))
            << dtype << ' ' << count << " rule " << static_cast<int>(rule);
      }
    }
  }
}

TEST_P(UpdateKernels, ChangeNothingWhenTheStepIsSkipped) {
  Machine machine(GetParam());
  UpdateScalars skip = some_scalars();
  skip.skip = 1;
  for (const Rule rule : kRules) {
    for (const DType dtype : dtypes()) {
      DeviceWeights weights(machine.stream, Weights::drawn_for(1003), dtype, skip);
      const auto before = weights.bits(machine.stream);
      weights.update(machine.stream, rule);
      EXPECT_EQ(weights.bits(machine.stream), before) << dtype;
    }
  }
}

TEST_P(UpdateKernels, KeepGapsAtZero) {
  Machine machine(GetParam());
  const std::vector<double> zero(300, 0.0);
  const Weights weights{zero, zero, zero, zero, mixed_flags(300)};
  for (const Rule rule : kRules) {
    DeviceWeights on_device(machine.stream, weights, DType::bf16, some_scalars());
    on_device.update(machine.stream, rule);
    for (const std::vector<unsigned char>& bytes : on_device.bits(machine.stream)) {
      EXPECT_EQ(bytes, std::vector<unsigned char>(bytes.size(), 0));
    }
  }
}

TEST_P(UpdateKernels, HaveTheSameBitsTwiceAndWithOtherThreads) {
  std::vector<std::vector<std::vector<unsigned char>>> runs;
  for (const int num_threads : {1, 3, 3}) {
    Machine machine(GetParam(), num_threads);
    DeviceWeights weights(machine.stream, Weights::drawn_for(70001), DType::bf16, some_scalars());
    weights.update(machine.stream, Rule::adam);
    runs.push_back(weights.bits(machine.stream));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[1], runs[2]);
}

}  // namespace
}  // namespace bloomery::testing
