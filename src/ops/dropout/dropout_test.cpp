#include "ops/dropout/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "build_config.h"
#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

constexpr RandomKey kKey = 0xFEDCBA9876543210u;

// y = x * keep * scale, where channel c of token t is kept when half c % 8 of Philox-7 block
// (samples[t / length], places[t % length], c / 8) is at least round(65536 * probability), and
// scale = 65536 / (65536 - that); see ops/dropout/counter.h.
std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> cases;
  for (const auto& [sequences, length, columns, probability] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, float>>{{1, 1, 1, 0.5f},
                                                                                {2, 3, 7, 0.1f},
                                                                                {3, 5, 129, 0.25f},
                                                                                {2, 16, 768, 0.1f},
                                                                                {1, 4, 64, 1.0f},
                                                                                {2, 0, 8, 0.1f}}) {
    cases.push_back(
        {.name = concat("sequences=", sequences, ",length=", length, ",columns=", columns,
                        ",probability=", probability),
         .inputs =
             {{.name = "x", .shape = {sequences * length, columns}},
              {.name = "samples", .role = Role::int64, .shape = {sequences}, .limit = 1 << 30},
              {.name = "places", .role = Role::int32, .shape = {length}, .limit = 4096}},
         .forward = [probability](Context& context, Inputs& in) -> Outputs {
           return {
               {"y", dropout(context, in.value("x"), {.probability = probability, .key = kKey})}};
         },
         .attributes = {{"probability", concat(probability)},
                        {"key", concat(kKey)},
                        {"length", concat(length)}},
         .batch =
             [sequences, length](Batch& batch, Inputs& in) {
               batch.num_sequences = sequences;
               batch.length = length;
               batch.samples = in.tensor("samples");
               batch.places = in.tensor("places");
             },
         .finite_differences = length > 0 && columns < 200});
  }
  return cases;
}

const bool kRegistered = register_op_tests("dropout", dropout_cases());

class DropoutTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  DropoutTest() {
    if (GetParam() == DeviceKind::cuda && num_cuda_devices() == 0) {
      return;
    }
    device = std::make_unique<Device>(DeviceOptions{.kind = GetParam(), .poison = true});
    stream = std::make_unique<Stream>(*device);
  }
  void SetUp() override {
    if (device == nullptr) {
      GTEST_SKIP() << "no GPU on this machine";
    }
  }

  Batch batch_of(const std::vector<std::int64_t>& samples,
                 const std::vector<std::int32_t>& places) const {
    Batch batch;
    batch.num_sequences = static_cast<std::int64_t>(samples.size());
    batch.length = static_cast<std::int64_t>(places.size());
    batch.samples = Tensor::from_host(*stream, samples, {batch.num_sequences});
    batch.places = Tensor::from_host(*stream, places, {batch.length});
    return batch;
  }

  // Dropout of ones, and the gradient of its sum: both are the mask times the scale.
  struct Masks {
    std::vector<float> forward, backward;
  };
  Masks masks(const Batch& batch, std::int64_t columns, float probability,
              const TokenRange& tokens = {}, std::int64_t first_channel = 0) {
    Mesh mesh = Mesh::single();
    Tape tape(*stream);
    Context context{
        .stream = *stream, .mesh = mesh, .batch = batch, .tape = &tape, .training = true};
    const Shape shape{
        tokens.count == TokenRange::kRest ? batch.num_tokens() - tokens.first : tokens.count,
        columns};
    const std::vector<float> ones(static_cast<std::size_t>(shape.numel()), 1.0f);
    const Value x = tape.value(Tensor::from_host(*stream, ones, shape));
    const Value y = dropout(context, x, {.probability = probability, .key = kKey, .tokens = tokens},
                            first_channel);
    tape.set_grad(y.slot, Tensor::from_host(*stream, ones, shape));
    tape.backward();
    return {y.data.to_host<float>(*stream), x.slot->grad.to_host<float>(*stream)};
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

TEST_P(DropoutTest, MaskIsTheCountersAndTheGradientHasTheSame) {
  const std::vector<std::int64_t> samples = {5, (std::int64_t{1} << 40) + 3};
  const std::vector<std::int32_t> places = {0, 9, 2, 1023};
  for (const std::int64_t columns : {13, 64, 300}) {
    const Masks actual = masks(batch_of(samples, places), columns, 0.3f);
    const std::uint32_t threshold = dropout_threshold(0.3f);
    std::vector<float> expected;
    for (const std::int64_t sample : samples) {
      for (const std::int32_t place : places) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const RandomBlock block =
              dropout_block(kKey, sample, place, 0, static_cast<std::uint32_t>(c / 8));
          expected.push_back(dropout_keeps(block, static_cast<int>(c % 8), threshold)
                                 ? dropout_scale(threshold)
                                 : 0.0f);
        }
      }
    }
    EXPECT_EQ(actual.forward, expected);
    EXPECT_EQ(actual.backward, expected);
  }
}

TEST_P(DropoutTest, MaskDoesNotDependOnHowTokensAreBatched) {
  const std::vector<std::int32_t> places = {0, 1, 2, 3, 4};
  std::vector<float> apart = masks(batch_of({17}, places), 72, 0.5f).forward;
  const std::vector<float> second = masks(batch_of({4711}, places), 72, 0.5f).forward;
  EXPECT_NE(apart, second);
  apart.insert(apart.end(), second.begin(), second.end());
  EXPECT_EQ(masks(batch_of({17, 4711}, places), 72, 0.5f).forward, apart);
}

// A rank that holds rows [first, first + count) of the tokens drops what all of them would there.
TEST_P(DropoutTest, ARangeOfTokensHasTheMaskOfItsRows) {
  constexpr std::int64_t kColumns = 72;
  const Batch batch = batch_of({17, 4711}, {0, 1, 2, 3, 4});
  const std::vector<float> whole = masks(batch, kColumns, 0.5f).forward;
  for (const auto& [first, count] :
       {std::pair{0, 10}, {0, 3}, {3, 4}, {7, 3}, {9, 1}, {4, 0}, {6, -1}}) {
    const auto begin = whole.begin() + first * kColumns;
    const std::vector<float> expected(
        begin, begin + (count < 0 ? batch.num_tokens() - first : count) * kColumns);
    const Masks part = masks(batch, kColumns, 0.5f, {.first = first, .count = count});
    EXPECT_EQ(part.forward, expected) << first << " " << count;
    EXPECT_EQ(part.backward, expected) << first << " " << count;
  }
}

// So does a rank that holds channels [first, first + count) of every row.
TEST_P(DropoutTest, ARangeOfChannelsHasTheMaskOfItsColumns) {
  constexpr std::int64_t kColumns = 184;
  const Batch batch = batch_of({17, 4711}, {0, 1, 2});
  const std::vector<float> whole = masks(batch, kColumns, 0.5f).forward;
  for (const auto& [first, count] : {std::pair{0, 40}, {40, 144}, {8, 13}, {136, 48}}) {
    std::vector<float> expected;
    for (std::int64_t row = 0; row < batch.num_tokens(); ++row) {
      const auto begin = whole.begin() + row * kColumns + first;
      expected.insert(expected.end(), begin, begin + count);
    }
    const Masks part = masks(batch, count, 0.5f, {}, first);
    EXPECT_EQ(part.forward, expected) << first << " " << count;
    EXPECT_EQ(part.backward, expected) << first << " " << count;
  }
  EXPECT_THROW(masks(batch, 8, 0.5f, {}, 4), Error);
}

TEST_P(DropoutTest, CoordinatesMayBeGivenByToken) {
  Batch batch = batch_of({17, 4711}, {0, 9, 2});
  const std::vector<float> compact = masks(batch, 72, 0.5f).forward;
  batch.places = Tensor::from_host<std::int32_t>(*stream, {0, 9, 2, 0, 9, 2}, {6});
  EXPECT_EQ(masks(batch, 72, 0.5f).forward, compact);
  batch.samples = Tensor::from_host<std::int64_t>(*stream, {17, 17, 17, 4711, 4711, 4711}, {6});
  EXPECT_EQ(masks(batch, 72, 0.5f).forward, compact);
  // The same tokens in another order: each keeps its mask.
  batch.places = Tensor::from_host<std::int32_t>(*stream, {2, 9, 0, 9, 2, 0}, {6});
  batch.samples = Tensor::from_host<std::int64_t>(*stream, {4711, 17, 17, 4711, 17, 4711}, {6});
  const std::vector<float> moved = masks(batch, 72, 0.5f).forward;
  const std::vector<std::size_t> was = {5, 1, 0, 4, 2, 3};
  for (std::size_t t = 0; t < was.size(); ++t) {
    for (std::size_t c = 0; c < 72; ++c) {
      EXPECT_EQ(moved[t * 72 + c], compact[was[t] * 72 + c]) << t << " " << c;
    }
  }
}

TEST_P(DropoutTest, KeepsTheRightShare) {
  std::vector<std::int32_t> places(64);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<std::int32_t>(i);
  }
  for (const float probability : {0.1f, 0.5f, 0.9f}) {
    const std::vector<float> mask = masks(batch_of({1, 2, 3, 4}, places), 512, probability).forward;
    double kept = 0;
    for (const float factor : mask) {
      kept += factor != 0 ? 1 : 0;
    }
    const auto count = static_cast<double>(mask.size());
    const double deviation = std::sqrt(count * probability * (1 - probability));
    EXPECT_NEAR(kept, count * (1 - probability), 4 * deviation) << probability;
  }
}

INSTANTIATE_TEST_SUITE_P(devices, DropoutTest,
                         ::testing::ValuesIn(build::cuda
                                                 ? std::vector{DeviceKind::cpu, DeviceKind::cuda}
                                                 : std::vector{DeviceKind::cpu}),
                         [](const auto& info) {
                           return info.param == DeviceKind::cuda ? "cuda" : "cpu";
                         });

TEST(Dropout, NothingToDropIsTheSameValueAndMistakesAreNamed) {
  Device device;
  Stream stream(device);
  Mesh mesh = Mesh::single();
  Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch, .training = true};
  const Value x{Tensor::zeros(stream, DType::fp32, {4, 8}), nullptr};
  EXPECT_EQ(dropout(context, x, {.probability = 0}).data.data(), x.data.data());
  EXPECT_THROW(dropout(context, x, {.probability = 1.5f}), Error);
  EXPECT_THROW(dropout(context, x, {.probability = 0.5f}), Error);  // no coordinates
  batch.num_sequences = 1;
  batch.length = 3;  // not the four rows of x
  batch.samples = Tensor::zeros(stream, DType::int64, {1});
  batch.places = Tensor::zeros(stream, DType::int32, {3});
  EXPECT_THROW(dropout(context, x, {.probability = 0.5f}), Error);
  batch.length = 6;
  batch.places = Tensor::zeros(stream, DType::int32, {6});
  EXPECT_NO_THROW(dropout(context, x, {.probability = 0.5f, .tokens = {2, 4}}));
  for (const TokenRange tokens : {TokenRange{}, {3, 4}, {-1, 4}, {2, 3}}) {
    EXPECT_THROW(dropout(context, x, {.probability = 0.5f, .tokens = tokens}), Error);
  }
  batch.places = Tensor::zeros(stream, DType::int32, {5});
  EXPECT_THROW(dropout(context, x, {.probability = 0.5f, .tokens = {2, 4}}), Error);
  context.training = false;
  EXPECT_EQ(dropout(context, x, {.probability = 0.5f}).data.data(), x.data.data());
}

}  // namespace
}  // namespace bloomery::testing
