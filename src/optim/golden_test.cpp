// Fifty steps against PyTorch's optimizers and a plain loop of Lion's, and the schedules against a
// table of the documented rules; tools/golden/optim.py made them, and lion.py.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "harness/device_test.h"
#include "harness/golden_errors.h"
#include "harness/op_harness.h"
#include "ops/optimizer/units.h"
#include "optim/optimizer.h"

namespace bloomery::testing {
namespace {

constexpr int kSteps = 50, kBatch = 8;
constexpr std::int64_t kFirst = 100, kSecond = 31;  // sizes of the two parameters
constexpr std::int64_t kElements = 3 * kUnitSize;   // a unit each and an empty one

std::ifstream open_golden(const std::string& name) {
  std::ifstream file(repository_root() + "/tests/golden/" + name);
  check(file.good(), "cannot open tests/golden/", name);
  return file;
}

std::map<std::string, std::vector<double>> read_rows(const std::string& name) {
  std::ifstream file = open_golden(name);
  std::map<std::string, std::vector<double>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string row;
    words >> row;
    for (double x = 0; words >> x;) {
      rows[row].push_back(x);
    }
  }
  return rows;
}

// Where element i of the problem stands in the flat buffers: the second parameter begins a unit.
std::int64_t place(std::int64_t i) { return i < kFirst ? i : kUnitSize + i - kFirst; }

std::vector<double> gathered(const std::vector<double>& flat) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < kFirst + kSecond; ++i) {
    numbers.push_back(flat[place(i)]);
  }
  return numbers;
}

std::vector<double> starting_weights() {
  std::vector<double> flat(kElements, 0.0);
  for (std::int64_t i = 0; i < kFirst + kSecond; ++i) {
    flat[place(i)] = 0.5 * std::sin(static_cast<double>(i + 1));
  }
  return flat;
}

std::vector<double> gradient(const std::vector<double>& weights, int step, double loss_scale) {
  std::vector<double> grad(kElements, 0.0);
  for (std::int64_t i = 0; i < kFirst + kSecond; ++i) {
    const auto x = static_cast<double>(i);
    const double stiffness = 0.5 + 0.3 * static_cast<double>(i % 7);
    grad[place(i)] = loss_scale * (stiffness * (weights[place(i)] - std::cos(x)) +
                                   0.3 * std::cos(0.7 * step + x));
  }
  return grad;
}

OptimizerOptions options_of(const OptimizerRule& rule, double loss_scale) {
  OptimizerOptions options{.rule = rule, .clip = 5.0};
  options.schedule = {.learning_rate = 0.05,
                      .min_learning_rate = 0.005,
                      .decay_style = DecayStyle::cosine,
                      .train_length = kSteps,
                      .decay_length = 40,
                      .warmup_length = 5,
                      .start_weight_decay = 0.01,
                      .end_weight_decay = 0.1,
                      .weight_decay_style = WeightDecayStyle::linear,
                      .samples_per_unit = kBatch};
  options.loss_scale.initial = loss_scale;
  return options;
}

struct Tolerances {
  double norms, weights, moments;
};

void follow_golden(DeviceKind device, DType dtype, const OptimizerRule& rule,
                   const std::string& file, double loss_scale, const Tolerances& tolerances) {
  const auto golden = read_rows(file);
  Machine machine(device);
  Stream& stream = machine.stream;
  FlatShard shard{.master = to_device(stream, dtype, starting_weights()),
                  .grad = Tensor::empty(stream, dtype, {kElements}),
                  .unit_flags = Tensor::from_host<std::uint8_t>(stream, {kUnitDecays, 0, 0}, {3})};
  Optimizer optimizer(stream, options_of(rule, loss_scale), {shard});
  const std::vector<double>& norms = golden.at("norms");
  ASSERT_EQ(norms.size(), static_cast<std::size_t>(kSteps));
  for (int step = 0; step < kSteps; ++step) {
    const Tensor grad =
        to_device(stream, dtype, gradient(to_doubles(stream, shard.master), step, loss_scale));
    stream.copy(shard.grad.data(), grad.data(), grad.bytes());
    optimizer.step({}, kBatch);
    const StepReport report = optimizer.report(0);
    EXPECT_NEAR(report.grad_norm, norms[step], tolerances.norms * norms[step]) << "step " << step;
    EXPECT_NEAR(report.clip_coefficient, std::min(1.0, 5.0 / (norms[step] + 1e-6)),
                tolerances.norms);
  }
  const FlatShard& after = optimizer.shards()[0];
  const auto error = [&](const Tensor& tensor, const char* row) {
    return relative_error(gathered(to_doubles(stream, tensor)), golden.at(row));
  };
  EXPECT_LE(error(after.master, "weights"), tolerances.weights);
  for (std::size_t i = 0; i < after.state.size(); ++i) {
    EXPECT_LE(error(after.state[i], i == 0 ? "moment1" : "moment2"), tolerances.moments);
  }
}

struct GoldenFile {
  OptimizerRule rule;
  std::string file;
  double single_norms = 1e-6;  // tolerance in single precision
};
const GoldenFile kFiles[] = {
    {Adam{.beta2 = 0.95}, "optim_adamw.txt"},
    {Adam{.beta2 = 0.95, .decoupled = false}, "optim_adam.txt"},
    {Momentum{}, "optim_sgd.txt"},
    // Signs do not pull back what rounding moved.
    {Lion{}, "optim_lion.txt", 1e-5},
};

TEST(OptimizerGolden, EqualsPyTorchInDoublePrecision) {
  for (const auto& [rule, file, single_norms] : kFiles) {
    SCOPED_TRACE(file);
    follow_golden(DeviceKind::cpu, DType::fp64, rule, file, 1.0, {1e-12, 1e-12, 1e-12});
  }
}

// A constant scale, not a power of two, must leave norms, clipping and weights as they are.
TEST(OptimizerGolden, LossScaleCancelsInDoublePrecision) {
  for (const auto& [rule, file, single_norms] : kFiles) {
    SCOPED_TRACE(file);
    follow_golden(DeviceKind::cpu, DType::fp64, rule, file, 12.0, {1e-12, 1e-12, 1e-12});
  }
}

class OptimizerGoldenSingle : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, OptimizerGoldenSingle, every_device(), device_label);

TEST_P(OptimizerGoldenSingle, EqualsPyTorch) {
  for (const auto& [rule, file, single_norms] : kFiles) {
    SCOPED_TRACE(file);
    follow_golden(GetParam(), DType::fp32, rule, file, 65536.0, {single_norms, 1e-6, 1e-5});
  }
}

ScheduleOptions read_schedule(std::istream& words) {
  const std::map<std::string, DecayStyle> styles = {
      {"constant", DecayStyle::constant},
      {"linear", DecayStyle::linear},
      {"cosine", DecayStyle::cosine},
      {"inverse-square-root", DecayStyle::inverse_square_root}};
  const std::map<std::string, WeightDecayStyle> weight_decay_styles = {
      {"constant", WeightDecayStyle::constant},
      {"linear", WeightDecayStyle::linear},
      {"cosine", WeightDecayStyle::cosine}};
  ScheduleOptions options{.samples_per_unit = 4};
  std::string style, weight_decay_style;
  std::int64_t decay = 0, warmup = 0;
  double fraction = 0, start = 0, end = 0;
  words >> style >> options.learning_rate >> options.min_learning_rate >> options.train_length >>
      decay >> warmup >> fraction >> weight_decay_style >> start >> end;
  options.decay_style = styles.at(style);
  options.decay_length = decay;
  options.weight_decay_style = weight_decay_styles.at(weight_decay_style);
  if (warmup < 0) {
    options.warmup_fraction = fraction;
  } else {
    options.warmup_length = warmup;
  }
  if (options.weight_decay_style == WeightDecayStyle::constant) {
    options.weight_decay = end;
  } else {
    options.start_weight_decay = start;
    options.end_weight_decay = end;
  }
  return options;
}

TEST(Schedule, EqualsTheTable) {
  std::ifstream file = open_golden("optim_schedules.txt");
  int num_rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) {
      continue;
    }
    std::istringstream words(line);
    const Schedule schedule = make_schedule(read_schedule(words));
    std::int64_t samples = 0;
    double rate = -1, decay = -1;
    words >> samples >> rate >> decay;
    ASSERT_TRUE(words) << line;
    EXPECT_NEAR(learning_rate(schedule, samples), rate, 1e-12 * rate + 1e-300) << line;
    EXPECT_NEAR(weight_decay(schedule, samples), decay, 1e-12 * decay) << line;
    ++num_rows;
  }
  EXPECT_EQ(num_rows, 576);
}

}  // namespace
}  // namespace bloomery::testing
