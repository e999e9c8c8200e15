#include "ops/quantized/quantized.h"

#include <cmath>
#include <limits>

#include "base/md5.h"
#include "base/random.h"
#include "comm/mesh.h"
#include "harness/device_test.h"
#include "ops/linear/linear.h"
#include "ops/quantized/quantized_weights.h"

namespace bloomery::testing {
namespace {

using enum QuantizedFormat;
constexpr QuantizedFormat kFormats[] = {int8, fp8, nf4};
constexpr DType kDTypes[] = {DType::fp32, DType::bf16, DType::fp16};

class Quantized : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Quantized, every_device(), device_label);

Tensor random_matrix(Stream& stream, DType dtype, std::int64_t rows, std::int64_t columns) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    numbers.push_back(random_normal(random_key(7, "matrix"), static_cast<std::uint64_t>(i)));
  }
  return to_device(stream, dtype, numbers).reshape({rows, columns});
}

QuantizedTensor quantized(Stream& stream, const Tensor& x, QuantizedFormat format) {
  QuantizedTensor to = QuantizedTensor::empty(stream, format, x.dtype(), x.shape());
  quantize_rows(stream, x, 0, x.shape().back(), to);
  return to;
}

std::string digest(Stream& stream, const Tensor& tensor) {
  const std::vector<unsigned char> bytes = to_bytes(stream, tensor);
  return md5_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Digests by tools/golden/quantized.py.
TEST_P(Quantized, CodesAreThoseOfBitsandbytes) {
  constexpr std::uint64_t kRows = 96, kColumns = 640;
  Machine machine(GetParam());
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < kRows * kColumns; ++i) {
    const auto word = static_cast<std::uint32_t>(i * 0x9E3779B1u);
    numbers.push_back(
        std::ldexp(static_cast<double>(word >> 21) - 1024, -static_cast<int>(i / kColumns % 8)));
  }
  const Shape shape{kRows, kColumns};
  const Tensor x = to_device(machine.stream, DType::fp32, numbers).reshape(shape);
  const QuantizedTensor fours = quantized(machine.stream, x, nf4);
  EXPECT_EQ(digest(machine.stream, fours.codes), "edb795284163b78959ec34c3af1e978d");
  EXPECT_EQ(digest(machine.stream, dequantized(machine.stream, fours, shape)),
            "b8870de2b51a4bc49b1223aa633071c1");
  const QuantizedTensor eights = quantized(machine.stream, x, int8);
  EXPECT_EQ(digest(machine.stream, eights.codes), "7ba2c07c143a7ecff37f5f1606e1afb7");
  EXPECT_EQ(digest(machine.stream, eights.scales), "dcc170b0c99e385df0e99c7341c28952");
}

// Root mean squares of errors beside those of Gaussian numbers.
TEST_P(Quantized, StandsForNumbersNearby) {
  constexpr std::int64_t kRows = 64, kColumns = 512;
  const double most[] = {0.0085, 0.028, 0.1};
  Machine machine(GetParam());
  const Tensor x = random_matrix(machine.stream, DType::fp32, kRows, kColumns);
  const std::vector<double> numbers = to_doubles(machine.stream, x);
  for (const QuantizedFormat format : kFormats) {
    const QuantizedTensor held = quantized(machine.stream, x, format);
    const std::vector<double> made =
        to_doubles(machine.stream, dequantized(machine.stream, held, x.shape()));
    double squares = 0, errors = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      squares += numbers[i] * numbers[i];
      errors += (made[i] - numbers[i]) * (made[i] - numbers[i]);
    }
    const double error = std::sqrt(errors / squares), limit = most[static_cast<int>(format) - 1];
    EXPECT_LT(error, limit) << format;
    EXPECT_GT(error, limit / 2) << format;
  }
}

TEST_P(Quantized, WhatCodesStandForHasTheSameCodes) {
  Machine machine(GetParam());
  for (const DType dtype : kDTypes) {
    for (const std::int64_t columns : {33, 100, 192}) {
      const Tensor x = random_matrix(machine.stream, dtype, 20, columns);
      machine.stream.fill(x.slice(3, 4).data(), 0, x.slice(3, 4).bytes());
      for (const QuantizedFormat format : kFormats) {
        const QuantizedTensor once = quantized(machine.stream, x, format);
        const Tensor made = dequantized(machine.stream, once, x.shape());
        const QuantizedTensor again = quantized(machine.stream, made, format);
        EXPECT_EQ(to_bytes(machine.stream, once.codes), to_bytes(machine.stream, again.codes))
            << format << " " << dtype << " " << columns;
        EXPECT_EQ(to_bytes(machine.stream, once.scales), to_bytes(machine.stream, again.scales))
            << format << " " << dtype << " " << columns;
        const std::vector<double> zeros = to_doubles(machine.stream, made.slice(3, 4));
        EXPECT_EQ(zeros, std::vector<double>(zeros.size(), 0)) << format;
      }
    }
  }
}

TEST_P(Quantized, PartsOfColumnsAreThoseOfTheWhole) {
  constexpr std::int64_t kRows = 11, kColumns = 256, kFirst = 64, kCount = 128;
  Machine machine(GetParam());
  const Tensor x = random_matrix(machine.stream, DType::bf16, kRows, kColumns);
  for (const QuantizedFormat format : kFormats) {
    const QuantizedTensor whole = quantized(machine.stream, x, format);
    const QuantizedTensor part =
        QuantizedTensor::empty(machine.stream, format, x.dtype(), {kRows, kCount});
    for (std::int64_t row = 0; row < kRows; row += 4) {
      quantize_rows(machine.stream, x.slice(row, std::min(row + 4, kRows)), kFirst, kCount, part,
                    row);
    }
    const auto all = to_doubles(machine.stream, dequantized(machine.stream, whole, x.shape()));
    const auto some =
        to_doubles(machine.stream, dequantized(machine.stream, part, {kRows, kCount}));
    for (std::int64_t i = 0; i < kRows * kCount; ++i) {
      ASSERT_EQ(some[static_cast<std::size_t>(i)],
                all[static_cast<std::size_t>(i / kCount * kColumns + kFirst + i % kCount)])
          << format << " " << i;
    }
  }
}

TEST_P(Quantized, NumbersThatAreNoneAreSeen) {
  Machine machine(GetParam());
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::vector<double> numbers(2 * 64, 1);
    numbers[70] = bad;
    const Tensor x = to_device(machine.stream, DType::fp32, numbers).reshape({2, 64});
    for (const QuantizedFormat format : kFormats) {
      const auto made =
          to_doubles(machine.stream,
                     dequantized(machine.stream, quantized(machine.stream, x, format), x.shape()));
      EXPECT_FALSE(std::isfinite(made[64])) << format;
      EXPECT_EQ(made[0], 1) << format;
    }
  }
}

struct Results {
  std::vector<double> y, grad_x;
  bool operator==(const Results&) const = default;
};

Results run_linear(Stream& stream, Parameter& weight, const Tensor& x) {
  const Batch batch;
  Mesh mesh = Mesh::single();
  Tape tape(stream);
  Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
  const Value input = context.wrap(x), y = linear(context, input, weight, nullptr);
  tape.set_grad(y.slot, random_matrix(stream, x.dtype(), y.shape()[0], y.shape()[1]));
  tape.backward();
  return {to_doubles(stream, y.data), to_doubles(stream, tape.grad(input.slot))};
}

TEST_P(Quantized, LinearComputesWithWhatTheCodesStandFor) {
  constexpr std::int64_t kIn = 192, kOut = 96;
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    const Tensor numbers = random_matrix(stream, dtype, kOut, kIn);
    const Tensor x = random_matrix(stream, dtype, 16, kIn);
    for (const QuantizedFormat format : kFormats) {
      Parameter weight = make_parameter("weight", Box::whole({kOut, kIn}), {}, true);
      weight.frozen = true;
      QuantizedWeights quantized(stream, format, dtype, {&weight});
      quantized.put_rows(weight, 0, numbers);
      Parameter plain = make_parameter("plain", Box::whole({kOut, kIn}), {}, true);
      plain.frozen = true;
      plain.value = value_of(stream, weight);
      EXPECT_EQ(run_linear(stream, weight, x), run_linear(stream, plain, x)) << format;
      weight.frozen = false;
      EXPECT_THROW(run_linear(stream, weight, x), Error);
    }
  }
}

}  // namespace
}  // namespace bloomery::testing
