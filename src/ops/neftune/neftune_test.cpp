#include "ops/neftune/neftune.h"

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kSequences = 3, kLength = 20, kColumns = 45;

class NoiseTest : public DeviceTest {};

Batch coordinates(Stream& stream) {
  Batch batch{.num_sequences = kSequences, .length = kLength};
  batch.samples = Tensor::from_host<std::int64_t>(stream, {7, 9, std::int64_t{1} << 33}, {3});
  std::vector<std::int32_t> places;
  for (std::int32_t i = 0; i < kLength; ++i) places.push_back(100 + i);
  batch.places = Tensor::from_host(stream, places, {kLength});
  return batch;
}

std::vector<float> noise(Stream& stream, const Batch& batch, const NoiseOptions& options,
                         std::int64_t rows) {
  Mesh mesh = Mesh::single();
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value x = context.wrap(Tensor::zeros(stream, DType::fp32, {rows, kColumns}));
  add_noise(context, x, options);
  return x.data.to_host<float>(stream);
}

TEST_P(NoiseTest, IsAFunctionOfSamplePlaceAndChannel) {
  Machine machine(GetParam());
  const Batch batch = coordinates(machine.stream);
  const NoiseOptions options{.size = 0.25f, .key = random_key(5, "noise")};
  const std::vector<float> all = noise(machine.stream, batch, options, kSequences * kLength);
  const std::int64_t samples[] = {7, 9, std::int64_t{1} << 33};
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t token = static_cast<std::int64_t>(i) / kColumns;
    const auto channel = static_cast<std::uint32_t>(i % kColumns);
    const RandomBlock block =
        dropout_block(options.key, samples[token / kLength],
                      static_cast<std::int32_t>(100 + token % kLength), 0, channel / 8);
    const std::uint32_t bits = block[channel % 8 / 2] >> (16 * (channel % 2));
    ASSERT_EQ(all[i], 0.25f * centred(bits)) << i;
    ASSERT_LT(std::abs(all[i]), 0.25f);
    sum += all[i];
    squares += all[i] * all[i];
  }
  const auto count = static_cast<double>(all.size());
  EXPECT_NEAR(sum / count, 0, 4 * 0.25 / std::sqrt(3 * count));
  EXPECT_NEAR(squares / count, 0.0625 / 3, 0.0625 / 20);
  NoiseOptions some = options;
  some.tokens = {.first = 33, .count = 9};
  EXPECT_EQ(noise(machine.stream, batch, some, 9),
            std::vector<float>(all.begin() + 33 * kColumns, all.begin() + 42 * kColumns));
}

INSTANTIATE_TEST_SUITE_P(devices, NoiseTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
