#include "ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "device/overlap.h"
#include "ops/activation/activation.h"
#include "ops/matmul/choices.h"
#include "ops/matmul/cpu_plans.h"

namespace bloomery {
namespace {

using Numbers = std::vector<double>;

// Exact in every dtype, as are sums of their products; `rounded` ones are not.
Numbers random_numbers(const std::string& purpose, std::int64_t count, bool rounded = false) {
  Numbers values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = random_uniform(random_key(1, purpose), i) * 17.0 - 8.0;
    values[i] = rounded ? value : std::floor(value) / 8.0;
  }
  return values;
}

// A device with what a test needs around it.
struct Bench {
  explicit Bench(DeviceKind kind, int num_threads = 2)
      : device({.kind = kind, .num_threads = num_threads, .poison = true}), stream(device) {}

  Tensor upload(DType dtype, const Shape& shape, const Numbers& values) {
    return dispatch_floating(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> cast;
      for (const double value : values) {
        cast.push_back(T(static_cast<Accumulator<T>>(value)));
      }
      return Tensor::from_host(stream, cast, shape);
    });
  }
  Numbers download(const Tensor& tensor) {
    return dispatch_floating(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      Numbers values;
      for (const T value : tensor.to_host<T>(stream)) {
        values.push_back(static_cast<Accumulator<T>>(value));
      }
      return values;
    });
  }

  Device device;
  Stream stream;
};

struct Problem {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false, add = false;
  DType input = DType::fp32, output = DType::fp32;
  bool rounded = false;

  Numbers a() const { return random_numbers("a", m * k, rounded); }
  Numbers b() const { return random_numbers("b", k * n, rounded); }
  Numbers earlier() const { return random_numbers("d", m * n, rounded); }

  Numbers expected() const {
    const Numbers left = a(), right = b();
    Numbers d = add ? earlier() : Numbers(static_cast<std::size_t>(m * n));
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t l = 0; l < k; ++l) {
        const double factor = left[static_cast<std::size_t>(transpose_a ? l * m + i : i * k + l)];
        for (std::int64_t j = 0; j < n; ++j) {
          d[static_cast<std::size_t>(i * n + j)] +=
              factor * right[static_cast<std::size_t>(transpose_b ? j * k + l : l * n + j)];
        }
      }
    }
    return d;
  }

  Numbers actual(Bench& bench) const {
    const Tensor left = bench.upload(input, transpose_a ? Shape{k, m} : Shape{m, k}, a());
    const Tensor right = bench.upload(input, transpose_b ? Shape{n, k} : Shape{k, n}, b());
    const Tensor d =
        add ? bench.upload(output, {m, n}, earlier()) : Tensor::empty(bench.stream, output, {m, n});
    launch(bench.stream, Matmul{.a = left,
                                .b = right,
                                .d = d,
                                .transpose_a = transpose_a,
                                .transpose_b = transpose_b,
                                .add = add});
    return bench.download(d);
  }
};

void expect_close(const Numbers& actual, const Numbers& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size) + 1e-30);
}

double tolerance(DType dtype) {
  return dtype == DType::bf16 ? 4e-3 : dtype == DType::fp16 ? 5e-4 : 1e-6;
}

class MatmulTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::cuda && num_cuda_devices() == 0) {
      GTEST_SKIP() << "no GPU in this build or machine";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(devices, MatmulTest, ::testing::Values(DeviceKind::cpu, DeviceKind::cuda),
                         [](const auto& info) {
                           return info.param == DeviceKind::cpu ? "cpu" : "cuda";
                         });

TEST_P(MatmulTest, TransposesDtypesAndAdd) {
  Bench bench(GetParam());
  for (const auto& [m, n, k] :
       {MatmulSizes{1, 1, 1}, MatmulSizes{3, 5, 7}, MatmulSizes{130, 67, 129},
        MatmulSizes{32, 264, 1100}, MatmulSizes{4, 6, 0}}) {
    for (int bits = 0; bits < 8; ++bits) {
      for (const auto& [input, output] :
           {std::pair{DType::fp32, DType::fp32}, std::pair{DType::bf16, DType::bf16},
            std::pair{DType::bf16, DType::fp32}, std::pair{DType::fp16, DType::fp16},
            std::pair{DType::fp16, DType::fp32}}) {
        const Problem problem{m,     n,     k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                              input, output};
        SCOPED_TRACE(concat(m, "x", n, "x", k, " bits ", bits, " ", input, " to ", output));
        expect_close(problem.actual(bench), problem.expected(), tolerance(output));
      }
    }
  }
}

TEST_P(MatmulTest, EpiloguesKeepWhatBackwardNeeds) {
  Bench bench(GetParam());
  const std::int64_t m = 33, n = 72, k = 40;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const Activation activation :
         {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::relu}) {
      SCOPED_TRACE(concat(name(activation), " ", dtype));
      const Problem problem{m, n, k, false, true, false, dtype, dtype};
      const Tensor a = bench.upload(dtype, {m, k}, problem.a());
      const Tensor b = bench.upload(dtype, {n, k}, problem.b());
      const Numbers offsets = random_numbers("bias", n);
      const Tensor bias = bench.upload(dtype, {n}, offsets);
      const Tensor y = Tensor::empty(bench.stream, dtype, {m, n});
      const Tensor before = Tensor::empty(bench.stream, dtype, {m, n});
      launch(bench.stream, Matmul{.a = a,
                                  .b = b,
                                  .d = y,
                                  .transpose_b = true,
                                  .bias = bias,
                                  .activation = activation,
                                  .before = before});
      Numbers expected_before = problem.expected(), expected = expected_before;
      const Numbers kept = bench.download(before);
      Numbers expected_grad = expected;
      dispatch_activation(activation, [&](auto tag) {
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected_before[i] += offsets[i % static_cast<std::size_t>(n)];
          expected[i] = activate<decltype(tag)::value>(expected_before[i]);
          expected_grad[i] *= activation_derivative<decltype(tag)::value>(kept[i]);
        }
      });
      expect_close(kept, expected_before, tolerance(dtype));
      expect_close(bench.download(y), expected, 1.5 * tolerance(dtype));

      const Tensor grad = Tensor::empty(bench.stream, dtype, {m, n});
      launch(bench.stream, Matmul{.a = a,
                                  .b = b,
                                  .d = grad,
                                  .transpose_b = true,
                                  .derivative = activation,
                                  .derivative_at = before});
      expect_close(bench.download(grad), expected_grad, 1.5 * tolerance(dtype));
    }
  }
}

// What generation multiplies, with rows of b that one warp of a GPU takes, or several share; some
// columns are left over.
TEST_P(MatmulTest, FewRowsWithBiasAndActivation) {
  Bench bench(GetParam());
  const OverlapLaunches overlap(bench.stream);
  for (std::int64_t m = 1; m <= 5; ++m) {
    for (const auto& [n, k] : {std::pair{7, 8}, {2304, 768}, {770, 1104}, {36, 3072}, {9, 8960}}) {
      for (const auto& [dtype, output] :
           {std::pair{DType::fp32, DType::fp32}, std::pair{DType::bf16, DType::bf16},
            std::pair{DType::bf16, DType::fp32}, std::pair{DType::fp16, DType::fp16}}) {
        const Activation activation = m == 1   ? Activation::none
                                      : m == 2 ? Activation::gelu_tanh
                                      : m == 3 ? Activation::silu
                                               : Activation::gelu_erf;
        SCOPED_TRACE(concat(m, "x", n, "x", k, " ", dtype, " to ", output));
        const Problem problem{m, n, k, false, true, false, dtype, output};
        const Tensor a = bench.upload(dtype, {m, k}, problem.a());
        const Tensor b = bench.upload(dtype, {n, k}, problem.b());
        const Numbers offsets = random_numbers("bias", n);
        const Tensor bias = bench.upload(dtype, {n}, offsets);
        const Tensor y = Tensor::empty(bench.stream, output, {m, n});
        launch(bench.stream, Matmul{.a = a,
                                    .b = b,
                                    .d = y,
                                    .transpose_b = true,
                                    .bias = bias,
                                    .activation = activation});
        Numbers expected = problem.expected();
        dispatch_activation(activation, [&](auto tag) {
          for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] = activate<decltype(tag)::value>(expected[i] +
                                                         offsets[i % static_cast<std::size_t>(n)]);
          }
        });
        expect_close(bench.download(y), expected, 1.5 * tolerance(output));
      }
    }
  }
}

// As steps of many sequences multiply: b in tiles of several heights, its k divided or not, the
// last tile not whole.
TEST_P(MatmulTest, SomeRowsWithBiasAndActivation) {
  Bench bench(GetParam());
  const OverlapLaunches overlap(bench.stream);
  for (const std::int64_t m : {5, 17, 64}) {
    for (const auto& [n, k] :
         {std::pair{48, 72}, {144, 1104}, {1040, 520}, {80, 4480}, {17920, 8}, {65552, 8}}) {
      for (const auto& [dtype, output] :
           {std::pair{DType::bf16, DType::bf16}, std::pair{DType::bf16, DType::fp32},
            std::pair{DType::fp16, DType::fp16}}) {
        if (dtype == DType::fp16 && n * k > 1 << 18) {
          continue;
        }
        SCOPED_TRACE(concat(m, "x", n, "x", k, " ", dtype, " to ", output));
        const Problem problem{m, n, k, false, true, false, dtype, output};
        const Tensor a = bench.upload(dtype, {m, k}, problem.a());
        const Tensor b = bench.upload(dtype, {n, k}, problem.b());
        const Numbers offsets = random_numbers("bias", n);
        const Tensor bias = bench.upload(dtype, {n}, offsets);
        const Tensor y = Tensor::empty(bench.stream, output, {m, n});
        launch(bench.stream, Matmul{.a = a,
                                    .b = b,
                                    .d = y,
                                    .transpose_b = true,
                                    .b_lasts = m == 64,
                                    .bias = bias,
                                    .activation = m == 5 ? Activation::none : Activation::silu});
        Numbers expected = problem.expected();
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] += offsets[i % static_cast<std::size_t>(n)];
          expected[i] = m == 5 ? expected[i] : activate<Activation::silu>(expected[i]);
        }
        expect_close(bench.download(y), expected, 1.5 * tolerance(output));
      }
    }
  }
}

TEST_P(MatmulTest, TheActivatedValueBesideADerivative) {
  Bench bench(GetParam());
  for (const auto& [m, n] : {std::pair{0, 8}, std::pair{5, 9}, std::pair{300, 1032}}) {
    for (const Activation activation : {Activation::gelu_tanh, Activation::squared_relu}) {
      for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
        SCOPED_TRACE(concat(m, "x", n, " ", dtype));
        const Problem problem{m, n, 24, false, false, false, dtype, dtype};
        const Tensor a = bench.upload(dtype, {m, problem.k}, problem.a());
        const Tensor b = bench.upload(dtype, {problem.k, n}, problem.b());
        const Tensor at = bench.upload(dtype, {m, n}, random_numbers("at", std::int64_t{m} * n));
        const auto empty = [&] { return Tensor::empty(bench.stream, dtype, {m, n}); };
        const Tensor d = empty(), alone = empty(), activated = empty(), expected = empty();
        Matmul product{.a = a, .b = b, .d = alone, .m = m};
        product.derivative = activation;
        product.derivative_at = at;
        launch(bench.stream, product);
        product.d = d;
        product.activated = activated;
        launch(bench.stream, product);
        launch(bench.stream, ActivationForward{.x = at, .y = expected, .activation = activation});
        EXPECT_EQ(bench.download(d), bench.download(alone));
        expect_close(bench.download(activated), bench.download(expected), tolerance(dtype));
      }
    }
  }
}

TEST_P(MatmulTest, ColumnSumsBesideADerivative) {
  Bench bench(GetParam());
  for (const auto& [m, n] :
       {std::pair{0, 8}, std::pair{5, 9}, std::pair{1500, 72}, std::pair{300, 1031}}) {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      SCOPED_TRACE(concat(m, "x", n, " ", dtype));
      const Problem problem{m, n, 24, false, false, false, dtype, dtype};
      const Tensor a = bench.upload(dtype, {m, problem.k}, problem.a());
      const Tensor b = bench.upload(dtype, {problem.k, n}, problem.b());
      const Tensor at = bench.upload(dtype, {m, n}, random_numbers("at", std::int64_t{m} * n));
      const Tensor d = Tensor::empty(bench.stream, dtype, {m, n});
      const Tensor parts =
          Tensor::empty(bench.stream, DType::fp32, {num_column_sum_parts(bench.stream, m, n), n});
      const Tensor sums = Tensor::empty(bench.stream, DType::fp32, {n});
      launch(bench.stream, Matmul{.a = a,
                                  .b = b,
                                  .d = d,
                                  .m = m,
                                  .derivative = Activation::gelu_tanh,
                                  .derivative_at = at,
                                  .column_sums = parts});
      launch(bench.stream, ColumnSum{.x = parts, .sums = sums});
      Numbers expected(static_cast<std::size_t>(n));
      const Numbers values = bench.download(d);
      for (std::size_t i = 0; i < values.size(); ++i) {
        expected[i % expected.size()] += values[i];
      }
      expect_close(bench.download(sums), expected, 1e-6);
    }
  }
}

TEST_P(MatmulTest, ColumnSumOfEveryShape) {
  Bench bench(GetParam());
  for (const auto& [rows, columns] :
       {std::pair{0, 3}, std::pair{1, 1}, std::pair{7, 13}, std::pair{2049, 8},
        std::pair{515, 1031}, std::pair{1024, 2304}}) {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      for (const bool add : {false, true}) {
        SCOPED_TRACE(concat(rows, "x", columns, " ", dtype, " ", add));
        const Numbers values = random_numbers("x", std::int64_t{rows} * columns);
        const Tensor x = bench.upload(dtype, {rows, columns}, values);
        Numbers expected = random_numbers("sums", columns);
        const Tensor sums = bench.upload(DType::fp32, {columns}, expected);
        if (!add) {
          expected.assign(expected.size(), 0.0);
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
          expected[i % expected.size()] += values[i];
        }
        launch(bench.stream, ColumnSum{.x = x, .sums = sums, .add = add});
        expect_close(bench.download(sums), expected, 1e-6);
      }
    }
  }
}

TEST_P(MatmulTest, ChoicesAreMadeOnceAndTravelAsText) {
  const Problem problem{200, 136, 264, true, false, true, DType::bf16, DType::fp32};
  Bench timed(GetParam());
  timed.device.service<MatmulChoices>().timing = true;
  const Numbers result = problem.actual(timed);
  expect_close(result, problem.expected(), 1e-6);
  const std::vector<std::string> lines = timed.device.service<MatmulChoices>().lines();
  ASSERT_EQ(lines.size(), 1u);

  Bench resumed(GetParam());
  resumed.device.service<MatmulChoices>().load(lines);
  EXPECT_EQ(problem.actual(resumed), result);
  EXPECT_EQ(resumed.device.service<MatmulChoices>().lines(), lines);
  EXPECT_TRUE(resumed.device.service<MatmulChoices>().rejected().empty());

  Bench foreign(GetParam());
  const std::string key = lines[0].substr(0, lines[0].find(' '));
  foreign.device.service<MatmulChoices>().load({key + " abacus 1 2"});
  expect_close(problem.actual(foreign), problem.expected(), 1e-6);
  EXPECT_EQ(foreign.device.service<MatmulChoices>().rejected().size(), 1u);
  EXPECT_THROW(foreign.device.service<MatmulChoices>().load({"nonsense"}), Error);
}

TEST(MatmulChoices, TimedOnesOutlastTheJob) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "products" / "gpu";
  const MatmulKey key{.m = 1, .n = 2, .k = 3}, other{.m = 4};
  {
    Device device({.num_threads = 1});
    MatmulChoices choices(device);
    choices.keep_in(file);
    EXPECT_EQ(choices.find(key), "");
    choices.store_timed(key, "fast 1");
    choices.store(other, "by rule");
  }
  Device device({.num_threads = 1});
  MatmulChoices choices(device);
  choices.keep_in(file);
  EXPECT_EQ(choices.find(key), "fast 1");
  EXPECT_EQ(choices.find(other), "");
  EXPECT_TRUE(choices.lines().empty());  // not used yet
  choices.load({concat("cpu:", key.text(), " of a checkpoint")});
  EXPECT_EQ(choices.find(key), "of a checkpoint");
  choices.keep_in("/proc/none/gpu");
  choices.store_timed(other, "fast 2");  // nowhere to write it
  EXPECT_EQ(choices.find(other), "fast 2");
}

TEST_P(MatmulTest, RefusesWhatDoesNotFit) {
  Bench bench(GetParam());
  const Tensor a = Tensor::zeros(bench.stream, DType::fp32, {4, 6});
  const Tensor b = Tensor::zeros(bench.stream, DType::fp32, {5, 3});
  const Tensor d = Tensor::zeros(bench.stream, DType::fp32, {4, 3});
  const Tensor half = Tensor::zeros(bench.stream, DType::bf16, {6, 3});
  EXPECT_THROW(launch(bench.stream, Matmul{.a = a, .b = b, .d = d}), Error);
  EXPECT_THROW(launch(bench.stream, Matmul{.a = a, .b = half, .d = d}), Error);
  const Tensor c = Tensor::zeros(bench.stream, DType::fp32, {6, 3});
  EXPECT_THROW(launch(bench.stream, Matmul{.a = a, .b = c, .d = d, .before = d}), Error);
}

// Every method and block size gives the same numbers, whatever a machine would choose.
TEST(CpuMatmul, EveryMethodAgrees) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    const Problem problem{150, 210, 700, false, true, false, dtype, DType::fp32};
    const Numbers expected = problem.expected();
    Bench probe(DeviceKind::cpu);
    const MatmulKey key{
        .m = problem.m, .n = problem.n, .k = problem.k, .transpose_b = true, .input = dtype};
    problem.actual(probe);
    const std::string line = probe.device.service<MatmulChoices>().lines().at(0);
    for (const CpuMatmulPlan& plan : probe.device.service<CpuMatmulPlans>().candidates(key)) {
      const std::int64_t odd = plan.method == CpuMethod::amx ? 96 : 37;  // tiles have whole strips
      for (const std::int64_t rows : {plan.block_rows, odd}) {
        Bench bench(DeviceKind::cpu, 3);
        const char* methods[] = {"onednn", "onednn_bf16", "amx", "packed"};
        bench.device.service<MatmulChoices>().load(
            {concat(line.substr(0, line.find(' ')), ' ', methods[static_cast<int>(plan.method)],
                    ' ', rows, ' ', plan.block_columns)});
        SCOPED_TRACE(bench.device.service<MatmulChoices>().lines().at(0));
        expect_close(problem.actual(bench), expected, 1e-6);
        EXPECT_TRUE(bench.device.service<MatmulChoices>().rejected().empty());
      }
    }
  }
}

// A checkpoint may name a method that has been taken out since: the rule decides, and says so.
TEST(CpuMatmul, DeletedMethodsAreRejected) {
  const Problem problem{.m = 200, .n = 136, .k = 264};
  const MatmulKey key{.m = problem.m, .n = problem.n, .k = problem.k};
  Bench fresh(DeviceKind::cpu);
  const Numbers result = problem.actual(fresh);
  for (const char* choice : {"openblas 128 128", "amx 96 128"}) {  // fp32 ran on the tiles once
    Bench bench(DeviceKind::cpu);
    auto& choices = bench.device.service<MatmulChoices>();
    choices.load({concat("cpu:", key.text(), ' ', choice)});
    EXPECT_EQ(problem.actual(bench), result);
    EXPECT_EQ(choices.rejected(), std::vector{concat(key.text(), ' ', choice)});
    EXPECT_EQ(choices.lines(), fresh.device.service<MatmulChoices>().lines());
  }
}

// Products of a pool of any size have the same bits, also where every sum is rounded.
TEST(CpuMatmul, BitsDoNotDependOnThreads) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    const Problem problem{.m = 300,
                          .n = 410,
                          .k = 330,
                          .transpose_a = true,
                          .add = true,
                          .input = dtype,
                          .rounded = true};
    Bench one(DeviceKind::cpu, 1);
    const Numbers expected = problem.actual(one);
    for (const int threads : {2, 5}) {
      Bench bench(DeviceKind::cpu, threads);
      EXPECT_EQ(problem.actual(bench), expected) << dtype << " with " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace bloomery
