#include "ops/attention/relative_bias.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"
#include "ops/attention/attention.h"

namespace bloomery::testing {
namespace {

// The buckets of T5's published models, from Hugging Face's implementation.
TEST(DistanceBuckets, EqualThoseOfT5) {
  const DistanceBuckets encoder = distance_buckets(32, 128, true);
  for (const auto& [distance, bucket] : std::vector<std::pair<int, int>>{{-64, 14},
                                                                         {-32, 12},
                                                                         {-16, 10},
                                                                         {-8, 8},
                                                                         {0, 0},
                                                                         {1, 17},
                                                                         {8, 24},
                                                                         {32, 28},
                                                                         {128, 31}}) {
    EXPECT_EQ(encoder.bucket(distance), bucket) << distance;
  }
  const DistanceBuckets decoder = distance_buckets(32, 128, false);
  for (const auto& [distance, bucket] : std::vector<std::pair<int, int>>{
           {-15, 15}, {-17, 16}, {-32, 21}, {-64, 26}, {-100, 30}, {-128, 31}, {5, 0}}) {
    EXPECT_EQ(decoder.bucket(distance), bucket) << distance;
  }
  EXPECT_EQ(encoder.bucket(-1000000), 15);
  EXPECT_EQ(encoder.bucket(1000000), 31);
  EXPECT_EQ(decoder.bucket(-1000000), 31);
}

// Every distance has one bucket, whatever their number; bucket 16 of 32 both ways has none.
TEST(DistanceBuckets, CoverEveryDistanceOnce) {
  for (const bool both_ways : {false, true}) {
    for (const std::int64_t count : {4, 10, 32, 128}) {
      for (const std::int64_t farthest :
           {std::int64_t{65}, std::int64_t{128}, std::int64_t{1024}}) {
        const DistanceBuckets buckets = distance_buckets(count, farthest, both_ways);
        for (int distance = -1500; distance <= 1500; ++distance) {
          int taken = 0;
          for (int b = 0; b < buckets.count; ++b) {
            taken += buckets.first[b] <= distance && distance <= buckets.last[b] ? 1 : 0;
          }
          ASSERT_EQ(taken, 1) << count << " buckets up to " << farthest << ", " << distance;
        }
      }
    }
  }
}

class RelativeBiasTest : public DeviceTest {
 protected:
  static Parameter table(Stream& stream, std::int64_t buckets, std::int64_t heads) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < buckets * heads; ++i) {
      numbers.push_back(std::sin(static_cast<double>(3 * i)));
    }
    Parameter bias = make_parameter("bias", Box::whole({buckets, heads}), {}, false);
    bias.value = to_device(stream, DType::fp32, numbers).reshape({buckets, heads});
    bias.grad = Tensor::zeros(stream, DType::fp32, {buckets, heads});
    return bias;
  }
};

// The layers of a stack share a table: each adds its contribution. A call with some of the heads
// reads and changes their columns alone.
TEST_P(RelativeBiasTest, LayersAndPartsOfHeadsAddUp) {
  constexpr std::int64_t kHeads = 4, kDim = 8, kLength = 9;
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = 2;
  batch.length = kLength;
  const auto numbers = [&](std::int64_t heads, std::int64_t first) {
    std::vector<double> values;
    for (std::int64_t token = 0; token < 2 * kLength; ++token) {
      for (std::int64_t i = 0; i < heads * 3 * kDim; ++i) {
        values.push_back(std::cos(static_cast<double>(token * 1000 + first * 3 * kDim + i)));
      }
    }
    return to_device(stream, DType::fp32, values).reshape({2 * kLength, heads * 3 * kDim});
  };
  const auto gradient = [&](const std::vector<std::pair<std::int64_t, std::int64_t>>& calls) {
    Parameter bias = table(stream, 8, kHeads);
    Tape tape(stream);
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    int contributions = 0;
    tape.on_contribution = [&](Parameter&) { ++contributions; };
    std::vector<Value> outputs;
    for (const auto& [first, heads] : calls) {
      const Value qkv = tape.value(numbers(heads, first));
      outputs.push_back(
          attention(context, qkv,
                    {.num_heads = heads,
                     .num_groups = heads,
                     .head_dim = kDim,
                     .bias = {.table = &bias, .first_column = first, .max_distance = 6}}));
      std::vector<double> ones(static_cast<std::size_t>(2 * kLength * heads * kDim));
      for (std::size_t i = 0; i < ones.size(); ++i) {
        ones[i] = std::cos(static_cast<double>(i % static_cast<std::size_t>(kDim)));
      }
      tape.set_grad(outputs.back().slot,
                    to_device(stream, DType::fp32, ones).reshape({2 * kLength, heads * kDim}));
    }
    tape.backward();
    EXPECT_EQ(contributions, static_cast<int>(calls.size()));
    return to_doubles(stream, bias.grad);
  };
  const std::vector<double> once = gradient({{0, 4}}), twice = gradient({{0, 4}, {0, 4}});
  const std::vector<double> parts = gradient({{0, 1}, {1, 3}});
  double largest = 0;
  for (std::size_t i = 0; i < once.size(); ++i) {
    largest = std::max(largest, std::abs(once[i]));
    EXPECT_NEAR(twice[i], 2 * once[i], 1e-6);
    EXPECT_NEAR(parts[i], once[i], 1e-6);
  }
  EXPECT_GT(largest, 1e-3);
}

TEST_P(RelativeBiasTest, MistakesAreNamed) {
  Machine machine(GetParam());
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = 1;
  batch.length = 4;
  Context context{.stream = machine.stream, .mesh = mesh, .batch = batch};
  const Value qkv{Tensor::zeros(machine.stream, DType::fp32, {4, 24}), nullptr};
  Parameter small = table(machine.stream, 8, 1), odd = table(machine.stream, 7, 1);
  const auto options = [](Parameter& bias, std::int64_t farthest, std::int64_t column,
                          bool causal) {
    return AttentionOptions{
        .head_dim = 8,
        .causal = causal,
        .bias = {.table = &bias, .first_column = column, .max_distance = farthest}};
  };
  EXPECT_NO_THROW(attention(context, qkv, options(small, 5, 0, true)));
  EXPECT_THROW(attention(context, qkv, options(small, 4, 0, true)), Error);  // all are exact
  EXPECT_NO_THROW(attention(context, qkv, options(small, 4, 0, false)));
  EXPECT_THROW(attention(context, qkv, options(small, 5000, 0, true)), Error);
  EXPECT_THROW(attention(context, qkv, options(small, 5, 1, true)), Error);  // no such head
  EXPECT_THROW(attention(context, qkv, options(odd, 20, 0, false)), Error);  // no halves
  EXPECT_NO_THROW(attention(context, qkv, options(odd, 20, 0, true)));
}

INSTANTIATE_TEST_SUITE_P(Devices, RelativeBiasTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
