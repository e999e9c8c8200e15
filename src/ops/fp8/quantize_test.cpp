#include "ops/fp8/quantize.h"

#include <cmath>
#include <limits>

#include "base/md5.h"
#include "base/random.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

using Bytes = std::vector<unsigned char>;

class Fp8 : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Fp8, every_device(), device_label);

Tensor one(Stream& stream, float x) { return Tensor::from_host<float>(stream, {x}, {1}); }

std::string digest(const Bytes& bytes) {
  return md5_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Bytes quantized(Machine& machine, const Tensor& x, Fp8Format format) {
  const Tensor rows = Tensor::empty(machine.stream, DType::uint8, x.shape());
  launch(machine.stream,
         Quantize{.x = x, .format = format, .scale = one(machine.stream, 1), .rows = rows});
  return to_bytes(machine.stream, rows);
}

// Digests by tools/golden/fp8.py.
TEST_P(Fp8, BytesAreThoseOfPyTorch) {
  Machine machine(GetParam());
  std::vector<std::uint16_t> halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(i);
  }
  const Tensor bf16 = Tensor::empty(machine.stream, DType::bf16, {256, 256});
  machine.stream.copy(bf16.data(), halves.data(), bf16.bytes());
  EXPECT_EQ(digest(quantized(machine, bf16, Fp8Format::e4m3)), "13489e16780c5a4d9c1e7002359aafed");
  EXPECT_EQ(digest(quantized(machine, bf16, Fp8Format::e5m2)), "67511dc13a1a0e5506d3d41fbe1a7c60");

  std::vector<std::uint32_t> words(1 << 20);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::uint32_t>(i * 0x9E3779B1u);
  }
  const Tensor fp32 = Tensor::empty(machine.stream, DType::fp32, {1024, 1024});
  machine.stream.copy(fp32.data(), words.data(), fp32.bytes());
  EXPECT_EQ(digest(quantized(machine, fp32, Fp8Format::e4m3)), "b52fe4f26bb3f94c750e945d4fa4afbc");
  EXPECT_EQ(digest(quantized(machine, fp32, Fp8Format::e5m2)), "4b3db323b69c973dbf5183e60ee9fd3c");
}

template <Fp8Format kFormat>
void check_every_byte() {
  float before = 0;
  for (int byte = 0; byte < 0x7F; ++byte) {
    const auto bits = static_cast<std::uint8_t>(byte);
    const float number = decode<kFormat>(bits);
    if (std::isfinite(number)) {
      EXPECT_EQ(encode<kFormat>(number), bits);
      EXPECT_EQ(encode<kFormat>(-number), bits | 0x80);
      EXPECT_TRUE(byte == 0 ? number == 0 : number > before) << byte;
      before = number;
    }
  }
  EXPECT_EQ(before, largest(kFormat));
  EXPECT_TRUE(std::isnan(decode<kFormat>(0x7F)));
}

TEST(Fp8Format, EveryByteSurvives) {
  check_every_byte<Fp8Format::e4m3>();
  check_every_byte<Fp8Format::e5m2>();
}

struct Copies {
  Bytes rows, transposed;
  float amax = 0;
};

Copies copies_of(Machine& machine, const Tensor& x, Fp8Format format, float scale, bool rows,
                 bool transposed, float amax_before) {
  const std::int64_t m = x.shape()[0], n = x.shape()[1];
  const Tensor by_rows = Tensor::empty(machine.stream, DType::uint8, {m, n});
  const Tensor by_columns = Tensor::empty(machine.stream, DType::uint8, {n, m});
  const Tensor amax = one(machine.stream, amax_before), factor = one(machine.stream, scale);
  Quantize quantize{.x = x, .format = format, .scale = factor, .amax = amax};
  if (rows) {
    quantize.rows = by_rows;
  }
  if (transposed) {
    quantize.transposed = by_columns;
  }
  launch(machine.stream, quantize);
  return {to_bytes(machine.stream, by_rows), to_bytes(machine.stream, by_columns),
          amax.to_host<float>(machine.stream)[0]};
}

TEST_P(Fp8, CopiesAreTransposedAndAmaxIsRaised) {
  Machine machine(GetParam());
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {16, 16}, {48, 272}, {144, 400}, {256, 128}, {1008, 48}}) {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      std::vector<double> numbers(static_cast<std::size_t>(m * n));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = random_uniform(random_key(1, "fp8"), i) * 8 - 4;
      }
      const Tensor x = to_device(machine.stream, dtype, numbers).reshape({m, n});
      const std::vector<double> rounded = to_doubles(machine.stream, x);
      Bytes rows(numbers.size()), transposed(numbers.size());
      constexpr float kScale = 3.7f;
      float amax = 0;
      for (std::int64_t i = 0; i < m * n; ++i) {
        const auto number = static_cast<float>(rounded[static_cast<std::size_t>(i)]);
        amax = std::max(amax, std::abs(number));
        rows[static_cast<std::size_t>(i)] = encode<Fp8Format::e4m3>(number * kScale);
        transposed[static_cast<std::size_t>(i % n * m + i / n)] = rows[static_cast<std::size_t>(i)];
      }
      const Copies both = copies_of(machine, x, Fp8Format::e4m3, kScale, true, true, 0);
      EXPECT_EQ(both.rows, rows) << m << 'x' << n << ' ' << dtype;
      EXPECT_EQ(both.transposed, transposed) << m << 'x' << n << ' ' << dtype;
      EXPECT_EQ(both.amax, amax);
      EXPECT_EQ(copies_of(machine, x, Fp8Format::e4m3, kScale, true, false, 100).rows, rows);
      const Copies columns = copies_of(machine, x, Fp8Format::e4m3, kScale, false, true, 100);
      EXPECT_EQ(columns.transposed, transposed);
      EXPECT_EQ(columns.amax, 100);

      const Tensor raised = one(machine.stream, 0);
      launch(machine.stream, RaiseAmax{.x = x, .amax = raised});
      EXPECT_EQ(raised.to_host<float>(machine.stream)[0], amax);
    }
  }
}

// Within one step of the format: devices differ in the last bits of an activation.
void expect_close(const Bytes& found, const std::vector<double>& numbers, Fp8Format format,
                  float scale) {
  ASSERT_EQ(found.size(), numbers.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double x = dispatch_fp8(format, [&](auto tag) {
      return double{decode<decltype(tag)::format>(found[i])} / double{scale};
    });
    const double step = std::abs(numbers[i]) / (format == Fp8Format::e4m3 ? 16 : 8);
    ASSERT_NEAR(x, numbers[i], 1.01 * step + 0.01 / double{scale}) << i;
  }
}

// Numbers that an activation makes, with what a cast tells of them.
struct Made {
  std::vector<double> rows, transposed, columns;
  double amax = 0;
};
Made make_numbers(const std::vector<double>& x, const std::vector<double>* at, std::int64_t n) {
  constexpr Activation kGelu = Activation::gelu_tanh;
  const auto m = static_cast<std::int64_t>(x.size()) / n;
  Made made{x, x, std::vector<double>(static_cast<std::size_t>(n))};
  for (std::int64_t i = 0; i < m * n; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const double number = at != nullptr ? x[place] * activation_derivative<kGelu>((*at)[place])
                                        : activate<kGelu>(x[place]);
    made.rows[place] = number;
    made.transposed[static_cast<std::size_t>(i % n * m + i / n)] = number;
    made.columns[static_cast<std::size_t>(i % n)] += number;
    made.amax = std::max(made.amax, std::abs(number));
  }
  return made;
}

std::vector<double> random_numbers(const std::string& purpose, std::int64_t count, double size) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = size * (2 * random_uniform(random_key(1, purpose), i) - 1);
  }
  return numbers;
}

TEST_P(Fp8, CastsActivationsDerivativesAndSumsOfColumns) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const std::int64_t m = 304, n = 144;
  const Tensor x = to_device(stream, DType::bf16, random_numbers("x", m * n, 4)).reshape({m, n});
  const Tensor at = to_device(stream, DType::bf16, random_numbers("at", m * n, 3)).reshape({m, n});
  const std::vector<double> numbers = to_doubles(stream, x), points = to_doubles(stream, at);
  for (const bool derivative : {false, true}) {
    const Made wanted = make_numbers(numbers, derivative ? &points : nullptr, n);
    const Fp8Format format = derivative ? Fp8Format::e5m2 : Fp8Format::e4m3;
    const Tensor rows = Tensor::empty(stream, DType::uint8, {m, n});
    const Tensor transposed = Tensor::empty(stream, DType::uint8, {n, m});
    const Tensor sums = Tensor::empty(stream, DType::fp32, {num_fp8_sum_parts(m), n});
    const Tensor amax = one(stream, 0), scale = one(stream, 8);
    Quantize quantize{.x = x,
                      .format = format,
                      .scale = scale,
                      .rows = rows,
                      .transposed = transposed,
                      .amax = amax,
                      .activation = Activation::gelu_tanh,
                      .derivative_at = derivative ? ConstView(at) : ConstView(),
                      .column_sums = sums};
    launch(stream, quantize);
    const Bytes both = to_bytes(stream, rows);
    expect_close(both, wanted.rows, format, 8);
    expect_close(to_bytes(stream, transposed), wanted.transposed, format, 8);
    EXPECT_NEAR(amax.to_host<float>(stream)[0], wanted.amax, 1e-3 * wanted.amax);
    std::vector<double> found(static_cast<std::size_t>(n));
    const std::vector<double> parts = to_doubles(stream, sums);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      found[i % found.size()] += parts[i];
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], wanted.columns[i], 1e-3 * (std::abs(wanted.columns[i]) + 10)) << i;
    }
    if (!derivative) {
      quantize.transposed = {};
      launch(stream, quantize);
      EXPECT_EQ(to_bytes(stream, rows), both);
    }
  }
}

TEST_P(Fp8, AnAmaxWithNanIsNoNumber) {
  Machine machine(GetParam());
  std::vector<float> numbers(256, -2.0f);
  numbers[77] = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from_host(machine.stream, numbers, {16, 16});
  EXPECT_TRUE(std::isnan(copies_of(machine, x, Fp8Format::e5m2, 1, true, false, 1).amax));
  numbers[77] = -std::numeric_limits<float>::infinity();
  const Tensor y = Tensor::from_host(machine.stream, numbers, {16, 16});
  const Copies copies = copies_of(machine, y, Fp8Format::e5m2, 1, true, false, 1);
  EXPECT_TRUE(std::isinf(copies.amax));
  EXPECT_TRUE(std::isnan(decode<Fp8Format::e5m2>(copies.rows[77])));
}

// A product that reads an infinity must not give finite numbers, or no step would be skipped.
TEST_P(Fp8, InfinitiesAreNotClamped) {
  Machine machine(GetParam());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kHuge = std::numeric_limits<float>::max();
  std::vector<float> numbers(256, -2.0f);
  numbers[3] = kInfinity;
  numbers[50] = -kInfinity;
  numbers[100] = kHuge;  // times the scale it is infinite, but it was a number
  const Tensor x = Tensor::from_host(machine.stream, numbers, {16, 16});
  for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
    const Copies copies = copies_of(machine, x, format, 4, true, true, 0);
    const auto number = [&](std::uint8_t byte) {
      return format == Fp8Format::e4m3 ? decode<Fp8Format::e4m3>(byte)
                                       : decode<Fp8Format::e5m2>(byte);
    };
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float found = number(copies.rows[i]);
      const float transposed = number(copies.transposed[i % 16 * 16 + i / 16]);
      if (std::isinf(numbers[i])) {
        EXPECT_TRUE(std::isnan(found) && std::isnan(transposed)) << i;
      } else {
        EXPECT_EQ(found, numbers[i] == kHuge ? largest(format) : -8.0f) << i;
        EXPECT_EQ(transposed, found) << i;
      }
    }
  }
}

TEST_P(Fp8, RefusesMatricesThatProductsDoNotTake) {
  Machine machine(GetParam());
  const Tensor x = Tensor::zeros(machine.stream, DType::bf16, {16, 24});
  const Tensor rows = Tensor::empty(machine.stream, DType::uint8, {16, 24});
  EXPECT_THROW(
      launch(machine.stream, Quantize{.x = x, .scale = one(machine.stream, 1), .rows = rows}),
      Error);
}

}  // namespace
}  // namespace bloomery::testing
