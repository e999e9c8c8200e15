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
  EXPECT_EQ(digest(quantized(machine, bf16, Fp8Format::e4m3)), "d152de4e1938cad1ac1064f5bafbe877");
  EXPECT_EQ(digest(quantized(machine, bf16, Fp8Format::e5m2)), "394181daa67dca07c5ed83b2e218c8ea");

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
  EXPECT_EQ(copies.rows[77], 0xFB);  // the largest number of E5M2
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
