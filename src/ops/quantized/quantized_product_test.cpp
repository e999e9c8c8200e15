#include "ops/quantized/quantized_product.h"

#include <cmath>

#include "base/random.h"
#include "comm/mesh.h"
#include "harness/device_test.h"
#include "ops/linear/linear.h"
#include "ops/quantized/quantized.h"
#include "ops/quantized/quantized_weights.h"

namespace bloomery::testing {
namespace {

class QuantizedProducts : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, QuantizedProducts, every_device(), device_label);

Tensor random_matrix(Stream& stream, DType dtype, const char* purpose, std::int64_t rows,
                     std::int64_t columns) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    numbers.push_back(random_normal(random_key(9, purpose), static_cast<std::uint64_t>(i)));
  }
  return to_device(stream, dtype, numbers).reshape({rows, columns});
}

// Linear layers without a tape beside sums in fp64 of what the codes stand for.
void expect_right(Stream& stream, QuantizedFormat format, DType dtype, std::int64_t rows,
                  std::int64_t in, Activation activation) {
  constexpr std::int64_t kOut = 45;
  Parameter weight = make_parameter("weight", Box::whole({kOut, in}), {}, true);
  QuantizedWeights quantized(stream, format, dtype, {&weight});
  quantized.put_rows(weight, 0, random_matrix(stream, dtype, "weight", kOut, in));
  Parameter bias = make_parameter("bias", Box::whole({kOut}), {}, false);
  bias.value = random_matrix(stream, dtype, "bias", 1, kOut).reshape({kOut});
  const Tensor x = random_matrix(stream, dtype, "x", rows, in);
  ASSERT_EQ(is_quantized_product(*weight.codes, rows, in), rows <= kFewQuantizedRows);
  const Batch batch;
  Mesh mesh = Mesh::single();
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const auto y = to_doubles(stream, linear(context, LinearInput(context.wrap(x)), weight, &bias,
                                           {.activation = activation})
                                        .data);

  const auto w = to_doubles(stream, value_of(stream, weight)), a = to_doubles(stream, x),
             b = to_doubles(stream, bias.value);
  double squares = 0, errors = 0;
  for (std::int64_t i = 0; i < rows * kOut; ++i) {
    double sum = b[static_cast<std::size_t>(i % kOut)];
    for (std::int64_t c = 0; c < in; ++c) {
      sum += a[static_cast<std::size_t>(i / kOut * in + c)] *
             w[static_cast<std::size_t>(i % kOut * in + c)];
    }
    const double wanted = activation == Activation::relu ? std::max(sum, 0.0) : sum;
    squares += wanted * wanted;
    errors += std::pow(y[static_cast<std::size_t>(i)] - wanted, 2);
  }
  const double tolerance = dtype == DType::fp32 ? 2e-6 : dtype == DType::fp16 ? 1e-3 : 6e-3;
  EXPECT_LT(std::sqrt(errors / squares), tolerance)
      << format << " " << dtype << " rows=" << rows << " in=" << in;
}

TEST_P(QuantizedProducts, AreThoseOfWhatTheCodesStandFor) {
  Machine machine(GetParam());
  for (const auto format : {QuantizedFormat::int8, QuantizedFormat::fp8, QuantizedFormat::nf4}) {
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      for (const std::int64_t rows : {1, 2, 3, 7, 16, 17}) {
        expect_right(machine.stream, format, dtype, rows, 192, Activation::none);
      }
      expect_right(machine.stream, format, dtype, 1, 4160, Activation::relu);
    }
  }
}

// The sums of a row are the same whatever else there is, and whoever computes them.
TEST_P(QuantizedProducts, BitsDoNotDependOnThreads) {
  std::vector<std::vector<unsigned char>> all;
  for (const int threads : {1, 3}) {
    Machine machine(GetParam(), threads);
    Stream& stream = machine.stream;
    const Tensor x = random_matrix(stream, DType::bf16, "x", 3, 128);
    QuantizedTensor w =
        QuantizedTensor::empty(stream, QuantizedFormat::int8, DType::bf16, {70, 128});
    quantize_rows(stream, random_matrix(stream, DType::bf16, "weight", 70, 128), 0, 128, w);
    const Tensor d = Tensor::empty(stream, DType::bf16, {3, 70});
    launch(stream, QuantizedProduct{
                       .a = x, .codes = w.codes, .scales = w.scales, .format = w.format, .d = d});
    all.push_back(to_bytes(stream, d));
  }
  EXPECT_EQ(all[0], all[1]);
}

}  // namespace
}  // namespace bloomery::testing
