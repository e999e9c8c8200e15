#include <cmath>

#include "base/random.h"
#include "harness/device_test.h"
#include "harness/op_harness.h"
#include "ops/activation/activation.h"
#include "ops/matmul/matmul.h"

namespace bloomery::testing {
namespace {

struct Operand {
  Tensor bytes;
  Fp8Format format;
  Tensor inverse_scale;
  std::vector<double> numbers;
  Fp8Code code() const { return {format, inverse_scale}; }
};

// Numbers of a normal size in each format, with a scale.
Operand operand(Stream& stream, const std::string& purpose, Fp8Format format, std::int64_t rows,
                std::int64_t k, float inverse_scale) {
  Operand made{Tensor::empty(stream, DType::uint8, {rows, k}),
               format,
               Tensor::from_host<float>(stream, {inverse_scale}, {1}),
               {}};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(rows * k));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto x = static_cast<float>(random_uniform(random_key(3, purpose), i) * 16 - 8);
    dispatch_fp8(format, [&](auto tag) {
      bytes[i] = encode<decltype(tag)::format>(x);
      made.numbers.push_back(double{decode<decltype(tag)::format>(bytes[i])} * inverse_scale);
    });
  }
  stream.copy(made.bytes.data(), bytes.data(), bytes.size());
  stream.synchronize();
  return made;
}

std::vector<double> product(const Operand& a, const Operand& b, std::int64_t m, std::int64_t n,
                            std::int64_t k) {
  std::vector<double> d(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a.numbers[static_cast<std::size_t>(i * k + l)] *
               b.numbers[static_cast<std::size_t>(j * k + l)];
      }
      d[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  return d;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Tensor cores of Hopper keep about 14 bits of a sum of products in 8 bits.
double tolerance(DeviceKind kind, DType output, bool fast) {
  const double sums = kind == DeviceKind::cpu ? 1e-6 : fast ? 2e-3 : 1e-3;
  return sums + (output == DType::fp32 ? 0 : 2e-3);
}

class Fp8Matmul : public DeviceTest {
 protected:
  static constexpr std::int64_t kM = 96, kN = 80, kK = 272;
};
INSTANTIATE_TEST_SUITE_P(Devices, Fp8Matmul, every_device(), device_label);

TEST_P(Fp8Matmul, EqualsTheProductOfTheNumbers) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  using enum Fp8Format;
  for (const auto& [of_a, of_b] :
       {std::pair{e4m3, e4m3}, std::pair{e5m2, e4m3}, std::pair{e4m3, e5m2}}) {
    const Operand a = operand(stream, "a", of_a, kM, kK, 0.37f);
    const Operand b = operand(stream, "b", of_b, kN, kK, 0.0125f);
    const std::vector<double> expected = product(a, b, kM, kN, kK);
    for (const DType output : {DType::fp32, DType::bf16}) {
      for (const bool fast : {false, true}) {
        const Tensor d = Tensor::empty(stream, output, {kM, kN});
        Matmul matmul{.a = a.bytes,
                      .b = b.bytes,
                      .d = d,
                      .transpose_b = true,
                      .a_code = a.code(),
                      .b_code = b.code(),
                      .fast_sums = fast};
        launch(stream, matmul);
        EXPECT_LT(relative_error(to_doubles(stream, d), expected),
                  tolerance(GetParam(), output, fast))
            << of_a << ' ' << of_b << ' ' << output;
        matmul.add = true;
        launch(stream, matmul);
        std::vector<double> twice = expected;
        for (double& x : twice) {
          x *= 2;
        }
        EXPECT_LT(relative_error(to_doubles(stream, d), twice),
                  2 * tolerance(GetParam(), output, fast));
      }
    }
  }
}

TEST_P(Fp8Matmul, HasTheEpiloguesOfOtherProducts) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Operand a = operand(stream, "a", Fp8Format::e4m3, kM, kK, 0.03f);
  const Operand b = operand(stream, "b", Fp8Format::e4m3, kN, kK, 0.01f);
  std::vector<double> bias(kN), expected = product(a, b, kM, kN, kK);
  for (std::size_t j = 0; j < bias.size(); ++j) {
    bias[j] = static_cast<double>(j % 7) / 8 - 0.25;
  }
  const Tensor bias_tensor = to_device(stream, DType::bf16, bias);
  const Tensor d = Tensor::empty(stream, DType::bf16, {kM, kN});
  const Tensor before = Tensor::empty(stream, DType::bf16, {kM, kN});
  const Matmul plain{.a = a.bytes,
                     .b = b.bytes,
                     .d = d,
                     .transpose_b = true,
                     .a_code = a.code(),
                     .b_code = b.code()};
  Matmul forward = plain;
  forward.bias = bias_tensor;
  launch(stream, forward);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += bias[i % kN];
  }
  const double bound = tolerance(GetParam(), DType::bf16, false);
  EXPECT_LT(relative_error(to_doubles(stream, d), expected), bound);

  forward.activation = Activation::gelu_tanh;
  forward.before = before;
  launch(stream, forward);
  std::vector<double> activated = expected;
  std::transform(expected.begin(), expected.end(), activated.begin(), gelu);
  EXPECT_LT(relative_error(to_doubles(stream, before), expected), bound);
  EXPECT_LT(relative_error(to_doubles(stream, d), activated), bound);

  // The backward epilogue is that of a product of 16 bits, applied to what the plain product gives.
  Matmul backward = plain;
  launch(stream, backward);
  const std::vector<double> bare = to_doubles(stream, d);
  backward.derivative = Activation::relu;
  backward.derivative_at = before;
  const Tensor sums =
      Tensor::empty(stream, DType::fp32, {num_column_sum_parts(stream, kM, kN), kN});
  backward.column_sums = sums;
  launch(stream, backward);
  const std::vector<double> at = to_doubles(stream, before), found = to_doubles(stream, d);
  const std::vector<double> parts = to_doubles(stream, sums);
  std::vector<double> column(kN), summed(kN);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], at[i] > 0 ? bare[i] : 0);
    column[i % kN] += found[i];
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    summed[i % kN] += parts[i];
  }
  EXPECT_LT(relative_error(summed, column), 1e-6);
}

TEST_P(Fp8Matmul, RefusesOtherLayouts) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Operand a = operand(stream, "a", Fp8Format::e4m3, 16, 16, 1);
  const Tensor d = Tensor::empty(stream, DType::fp32, {16, 16});
  const Matmul matmul{.a = a.bytes, .b = a.bytes, .d = d, .a_code = a.code(), .b_code = a.code()};
  EXPECT_THROW(launch(stream, matmul), Error);
  Matmul half = matmul;
  half.transpose_b = true;
  half.b_code = {};
  EXPECT_THROW(launch(stream, half), Error);
}

}  // namespace
}  // namespace bloomery::testing
