#include "ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

constexpr RandomKey kDropoutKey = 0x0123456789ABCDEFu;

struct Problem {
  std::int64_t length = 1, heads = 1, groups = 1, dim = 1;
  bool causal = true;
  float dropout = 0;
};

AttentionOptions options_of(const Problem& p) {
  return {.num_heads = p.heads,
          .num_groups = p.groups,
          .head_dim = p.dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(p.dim)),
          .causal = p.causal,
          .dropout = {p.dropout, kDropoutKey}};
}

// A causal context with one sequence on a small CPU device.
struct Fixture {
  explicit Fixture(std::int64_t length, std::int64_t sequences = 1)
      : device({.num_threads = 2, .poison = true}), stream(device), mesh(Mesh::single()) {
    batch.num_sequences = sequences;
    batch.length = length;
  }
  Context context(bool training = false) {
    return {.stream = stream, .mesh = mesh, .batch = batch, .training = training};
  }
  void place_samples() {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(batch.num_sequences), 11);
    std::vector<std::int32_t> places;
    for (std::int64_t q = 0; q < batch.length; ++q) {
      places.push_back(static_cast<std::int32_t>(q));
    }
    batch.samples = Tensor::from_host(stream, samples, {batch.num_sequences});
    batch.places = Tensor::from_host(stream, places, {batch.length});
  }
  Value random(const Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = random_normal(17, i);
    }
    return {Tensor::from_host(stream, values, shape), nullptr};
  }

  Device device;
  Stream stream;
  Mesh mesh;
  Batch batch;
};

// Scores, softmax and mask with the whole matrix in memory.
std::vector<double> reference(const std::vector<double>& qkv, const Problem& p, bool training) {
  const std::int64_t per_group = p.heads / p.groups, row = p.groups * (per_group + 2) * p.dim;
  const std::uint32_t threshold = training ? dropout_threshold(p.dropout) : 0;
  std::vector<double> out(static_cast<std::size_t>(p.length * p.heads * p.dim));
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const double* group = qkv.data() + h / per_group * (per_group + 2) * p.dim;
    for (std::int64_t q = 0; q < p.length; ++q) {
      const std::int64_t visible = p.causal ? q + 1 : p.length;
      std::vector<double> weights(static_cast<std::size_t>(visible));
      double sum = 0;
      for (std::int64_t k = 0; k < visible; ++k) {
        double score = 0;
        for (std::int64_t c = 0; c < p.dim; ++c) {
          score +=
              group[q * row + h % per_group * p.dim + c] * group[k * row + per_group * p.dim + c];
        }
        weights[k] = std::exp(score * static_cast<double>(options_of(p).scale));
        sum += weights[k];
      }
      for (std::int64_t k = 0; k < visible; ++k) {
        const auto key = static_cast<std::uint32_t>(k);
        const RandomBlock block =
            dropout_block(kDropoutKey, 11, static_cast<std::int32_t>(q),
                          static_cast<std::uint32_t>(h), attention_dropout_block(key));
        const bool kept = dropout_keeps(block, attention_dropout_lane(key), threshold);
        const double factor = kept ? static_cast<double>(dropout_scale(threshold)) : 0.0;
        for (std::int64_t c = 0; c < p.dim; ++c) {
          out[(q * p.heads + h) * p.dim + c] +=
              factor * weights[k] / sum * group[k * row + (per_group + 1) * p.dim + c];
        }
      }
    }
  }
  return out;
}

TEST(Attention, EqualsTheWholeScoreMatrixInDoublePrecision) {
  for (const bool training : {false, true}) {
    for (const bool causal : {false, true}) {
      const Problem p{
          .length = 131, .heads = 4, .groups = 2, .dim = 19, .causal = causal, .dropout = 0.2f};
      Fixture f(p.length);
      f.place_samples();
      Context context = f.context(training);
      const Value qkv = f.random({p.length, p.groups * (p.heads / p.groups + 2) * p.dim});
      const Value y = attention(context, qkv, options_of(p));
      EXPECT_EQ(y.shape(), Shape({p.length, p.heads * p.dim}));
      const std::vector<double> expected =
          reference(qkv.data.to_host<double>(f.stream), p, training);
      EXPECT_LT(relative_error(y.data.to_host<double>(f.stream), expected), 1e-13);
    }
  }
}

// Values of one make every output the mean of the dropout factors over the visible keys.
TEST(Attention, DropoutKeepsTheExpectedShareOfKeys) {
  constexpr std::int64_t kLength = 256;
  constexpr float kProbability = 0.375f;
  Fixture f(kLength);
  f.place_samples();
  std::vector<double> qkv(kLength * 3);
  for (std::int64_t t = 0; t < kLength; ++t) {
    qkv[t * 3 + 2] = 1;
  }
  Context context = f.context(true);
  const Value x{Tensor::from_host(f.stream, qkv, {kLength, 3}), nullptr};
  const Value y = attention(context, x, {.causal = false, .dropout = {kProbability, 3}});
  double kept = 0;
  for (const double mean : y.data.to_host<double>(f.stream)) {
    kept += mean * (1 - kProbability) / kLength;
  }
  // Standard deviation of the share: sqrt(p (1-p)) / 256 = 0.0019.
  EXPECT_NEAR(kept, 1 - kProbability, 0.008);
}

// The mask is a function of places, not of where tiles and blocks happen to start: a key range
// that starts later, and a shorter sequence, see the same factors.
TEST(Attention, DropoutDoesNotDependOnTiles) {
  constexpr std::int64_t kLength = 200, kFirst = 77;
  const AttentionOptions options{.head_dim = 1, .causal = false, .dropout = {0.5f, 9}};
  const auto factors = [&](std::int64_t length, std::int64_t query, std::int64_t first) {
    // With zero queries, one key in sight and values of one, the output is that key's factor.
    Fixture f(length);
    f.place_samples();
    std::vector<std::int32_t> begin(static_cast<std::size_t>(length)), end(begin);
    for (std::int64_t q = 0; q < length; ++q) {
      begin[q] = static_cast<std::int32_t>(q < query ? first : first + q - query);
      begin[q] = std::min(begin[q], static_cast<std::int32_t>(length - 1));
      end[q] = begin[q] + 1;
    }
    f.batch.key_begin = Tensor::from_host(f.stream, begin, {length});
    f.batch.key_end = Tensor::from_host(f.stream, end, {length});
    std::vector<float> qkv(static_cast<std::size_t>(length * 3), 1.0f);
    Context context = f.context(true);
    const Value x{Tensor::from_host(f.stream, qkv, {length, 3}), nullptr};
    const std::vector<float> y = attention(context, x, options).data.to_host<float>(f.stream);
    return std::vector<bool>(y.begin(), y.end());
  };
  const std::vector<bool> whole = factors(kLength, 0, 0),
                          shifted = factors(kLength, kFirst, kFirst);
  int kept = 0;
  for (std::int64_t q = kFirst; q < kLength; ++q) {
    const auto key = static_cast<std::uint32_t>(q);
    const RandomBlock block =
        dropout_block(9, 11, static_cast<std::int32_t>(q), 0, attention_dropout_block(key));
    const bool expected =
        dropout_keeps(block, attention_dropout_lane(key), dropout_threshold(0.5f));
    EXPECT_EQ(whole[q], expected) << q;
    EXPECT_EQ(shifted[q], expected) << q;
    kept += expected;
  }
  EXPECT_GT(kept, 30);
  EXPECT_LT(kept, 93);
}

TEST(Attention, IgnoresDropoutOutsideTraining) {
  Fixture f(7);
  Context context = f.context(false);
  const Value qkv = f.random({7, 3 * 8});
  const AttentionOptions plain{.head_dim = 8};
  AttentionOptions dropping = plain;
  dropping.dropout = {0.5f, 1};
  EXPECT_EQ(attention(context, qkv, plain).data.to_host<double>(f.stream),
            attention(context, qkv, dropping).data.to_host<double>(f.stream));
}

// Scores of which exp would overflow, equal ones, and a huge one that takes all the weight.
TEST(Attention, SurvivesLargeScores) {
  Fixture f(3);
  Context context = f.context();
  const std::vector<float> qkv = {300, 300, 1, 300, 300, 3, 300, -300, 5};
  const Value x{Tensor::from_host(f.stream, qkv, {3, 3}), nullptr};
  EXPECT_EQ(attention(context, x, {}).data.to_host<float>(f.stream), (std::vector<float>{1, 2, 2}));
}

TEST(Attention, AcceptsNoTokens) {
  Fixture f(0);
  Context context = f.context();
  const Value qkv = f.random({0, 3 * 8});
  EXPECT_EQ(attention(context, qkv, {.head_dim = 8}).data.numel(), 0);
}

void expect_error(const std::function<void()>& action, const std::string& part) {
  try {
    action();
    FAIL() << "no error that says: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Attention, NamesMistakes) {
  Fixture f(4);
  Context context = f.context(true);
  const Value qkv = f.random({4, 3 * 8});
  const AttentionOptions good{.head_dim = 8};
  const auto with = [&](auto change) {
    AttentionOptions options = good;
    change(options);
    return [&context, &qkv, options] { attention(context, qkv, options); };
  };
  expect_error(with([](auto& o) { o.num_heads = 3, o.num_groups = 2; }), "3 query heads");
  expect_error(with([](auto& o) { o.head_dim = 7; }), "4 tokens of 21 numbers");
  expect_error(with([](auto& o) { o.num_heads = 2; }), "qkv has shape [4, 24]");
  expect_error(with([](auto& o) { o.scale = 0; }), "scale");
  expect_error(with([](auto& o) { o.dropout.probability = 1; }), "probability");
  expect_error(with([](auto& o) { o.dropout.probability = 0.5f; }), "batch.samples");
  expect_error(
      [&] {
        attention(context, f.random({4, 8}), qkv, places_of(f.batch), good);
      },
      "kv has shape [4, 24]");
  f.batch.key_begin = Tensor::from_host(f.stream, std::vector<std::int32_t>(4), {4});
  expect_error(with([](auto&) {}), "both key_begin and key_end");
  f.batch.key_begin = Tensor::from_host(f.stream, std::vector<std::int32_t>(3), {3});
  expect_error(with([](auto&) {}), "key_begin");
}

}  // namespace
}  // namespace bloomery::testing
