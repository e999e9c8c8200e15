#include "ops/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/device_test.h"
#include "ops/sampling/token_choice.h"

namespace bloomery::testing {
namespace {

std::vector<double> random_logits(std::size_t count, double scale, std::uint64_t seed) {
  const RandomKey key = random_key(seed, "logits");
  std::vector<double> logits;
  for (std::size_t i = 0; i < count; ++i) {
    logits.push_back(scale * random_normal(key, i));
  }
  return logits;
}

using Tokens = std::vector<std::int32_t>;

// Rows that draw from the same logits again and again.
class Rows {
 public:
  // `columns`: with padding, which is infinite; row i has the key i.
  Rows(Machine& machine, const std::vector<double>& logits, std::int64_t count,
       const SamplingOptions& options, const Tokens& occurred = {}, std::int64_t padding = 0,
       DType dtype = DType::fp32)
      : stream_(machine.stream), count_(count) {
    const auto vocabulary = static_cast<std::int64_t>(logits.size());
    std::vector<double> padded = logits;
    padded.resize(logits.size() + static_cast<std::size_t>(padding), INFINITY);
    logits_ = to_device(stream_, dtype, padded);
    const auto size = static_cast<std::size_t>(count);
    const auto words = static_cast<std::size_t>(occurred_words(vocabulary));
    Tokens bits(size * 2 * words, 0);
    std::vector<std::int64_t> keys;
    for (std::size_t i = 0; i < size; ++i) {
      keys.push_back(static_cast<std::int64_t>(random_key(5, concat("row ", i))));
      for (const std::int32_t token : occurred) {
        bits[i * 2 * words + static_cast<std::size_t>(token) / 32] |=
            static_cast<std::int32_t>(1u << token % 32);
      }
    }
    keys_ = Tensor::from_host(stream_, keys, {count});
    occurred_ = Tensor::from_host(stream_, bits, {static_cast<std::int64_t>(bits.size())});
    active_ = Tensor::from_host(stream_, Tokens(size, 1), {count});
    zeros_ = Tensor::zeros(stream_, DType::int32, {count});
    drawn_ = Tensor::zeros(stream_, DType::int32, {count});
    tokens_ = Tensor::zeros(stream_, DType::int32, {count});
    const std::vector<SamplingOptions> all(size, options);
    options_ = Tensor::empty(stream_, DType::uint8,
                             {static_cast<std::int64_t>(size * sizeof(SamplingOptions))});
    stream_.copy(options_.data(), all.data(), options_.bytes());
    stream_.synchronize();
    if (options.has_biases()) {
      biases_ = Tensor::zeros(stream_, DType::fp32, {count * vocabulary});
    }
    logs_ = Tensor::empty(stream_, DType::fp32, {count});
    const bool remembers = options.repetition_penalty != 1 || options.has_biases();
    kernel_ = {.options = static_cast<const SamplingOptions*>(options_.data()),
               .count = count,
               .logits = logits_.reshape({1, vocabulary + padding}),
               .vocabulary = vocabulary,
               .logit_rows = static_cast<const std::int32_t*>(zeros_.data()),
               .active = static_cast<const std::int32_t*>(active_.data()),
               .keys = static_cast<const RandomKey*>(keys_.data()),
               .drawn = static_cast<std::int32_t*>(drawn_.data()),
               .occurred = remembers ? static_cast<std::uint32_t*>(occurred_.data()) : nullptr,
               .biases = static_cast<float*>(biases_.data()),
               .tokens = static_cast<std::int32_t*>(tokens_.data()),
               .log_probabilities = static_cast<float*>(logs_.data())};
  }

  Tokens draw() {
    launch(stream_, kernel_);
    return tokens_.to_host<std::int32_t>(stream_);
  }
  std::vector<float> log_probabilities() { return logs_.to_host<float>(stream_); }
  void deactivate(std::int64_t row) { stream_.fill(active_.slice(row, row + 1).data(), 0, 4); }

 private:
  Stream& stream_;
  std::int64_t count_;
  Tensor options_, logits_, keys_, occurred_, biases_, active_, zeros_, drawn_, tokens_, logs_;
  SampleTokens kernel_;
};

// The probabilities by definition, in double precision.
std::vector<double> reference(const std::vector<double>& logits, const SamplingOptions& o,
                              const std::vector<std::int32_t>& occurred) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (const std::int32_t token : occurred) {
    double& score = scores[static_cast<std::size_t>(token)];
    score = score < 0 ? score * o.repetition_penalty : score / o.repetition_penalty;
  }
  std::vector<std::size_t> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    scores[i] /= o.temperature;
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const auto k = static_cast<std::size_t>(o.top_k);
  std::vector<double> weights(scores.size(), 0);
  double total = 0, before = 0, kept = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (k == 0 || scores[order[i]] >= scores[order[std::min(k, order.size()) - 1]]) {
      weights[order[i]] = std::exp(scores[order[i]]);
      total += weights[order[i]];
    }
  }
  for (const std::size_t i : order) {
    const double weight = weights[i] / total;
    weights[i] = o.top_p == 0 || before < o.top_p ? weight : 0;
    weights[i] = scores[i] >= scores[order[0]] + std::log(o.min_p) ? weights[i] : 0;
    before += weight;
    kept += weights[i];
  }
  for (double& weight : weights) {
    weight /= kept;
  }
  return weights;
}

class SamplingTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, SamplingTest, every_device(), device_label);

const std::vector<SamplingOptions>& all_options() {
  static const std::vector<SamplingOptions> all = {
      {.temperature = 1},
      {.temperature = 0.5},
      {.temperature = 1.7, .top_k = 9},
      {.temperature = 0.8, .top_p = 0.7},
      {.temperature = 1.2, .top_p = 0.97},
      {.temperature = 1.5, .top_k = 40, .top_p = 0.6, .repetition_penalty = 1.4},
      {.temperature = 1, .top_p = 0.001},
      {.temperature = 3, .repetition_penalty = 0.7},
      {.temperature = 1.3, .min_p = 0.05},
      {.temperature = 1.6, .top_k = 60, .min_p = 0.1},
      {.temperature = 1.1, .top_p = 0.9, .min_p = 0.02},
  };
  return all;
}

TEST_P(SamplingTest, DrawsByTheDefinitions) {
  const std::vector<double> logits = random_logits(300, 2, 1);
  const Tokens occurred = {3, 7, 299, 12};
  constexpr int kDraws = 20000;
  for (const SamplingOptions& options : all_options()) {
    Machine machine(GetParam());
    const std::vector<double> expected = reference(logits, options, occurred);
    std::vector<int> counts(logits.size(), 0);
    for (const std::int32_t token : Rows(machine, logits, kDraws, options, occurred, 4).draw()) {
      ASSERT_LT(token, 300);
      ++counts[static_cast<std::size_t>(token)];
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double mean = expected[i] * kDraws;
      EXPECT_LE(std::abs(counts[i] - mean), 5 * std::sqrt(mean) + 1) << i;
      EXPECT_TRUE(expected[i] > 0 || counts[i] == 0) << i;
    }
  }
}

// Vocabularies of models, aligned and not; flat ones have more candidates than fit a list.
TEST_P(SamplingTest, DevicesDrawTheSame) {
  std::vector<SamplingOptions> all = all_options();
  all.push_back({.greedy = true});
  all.push_back({.top_k = 50, .top_p = 0.9});
  all.push_back({.top_k = 1000});
  all.push_back({.top_k = 3000, .top_p = 0.5});
  all.push_back({.top_k = 40, .repetition_penalty = 2});
  all.push_back({.temperature = 2, .presence_penalty = 1, .frequency_penalty = 0.5});
  all.push_back({.top_k = 3000, .top_p = 0.9, .top_p_decay = 0.5, .top_p_bound = 0.3});
  all.push_back({.top_p = 0.99, .min_p = 0.3});
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (const auto& [size, padding, scale] :
         {std::tuple{5003, 0, 3.0}, {50257, 47, 4.0}, {4096, 0, 0.01}}) {
      const std::vector<double> logits =
          random_logits(static_cast<std::size_t>(size), scale, static_cast<std::uint64_t>(size));
      for (const SamplingOptions& options : all) {
        Machine here(GetParam()), host(DeviceKind::cpu);
        Rows rows(here, logits, 12, options, {0, 31, 32, 4000}, padding, dtype);
        Rows expected(host, logits, 12, options, {0, 31, 32, 4000}, padding, dtype);
        for (int step = 0; step < 3; ++step) {
          EXPECT_EQ(rows.draw(), expected.draw())
              << size << " top_k " << options.top_k << " top_p " << options.top_p;
          const std::vector<float> logs = rows.log_probabilities(),
                                   expected_logs = expected.log_probabilities();
          for (std::size_t i = 0; i < logs.size(); ++i) {
            EXPECT_NEAR(logs[i], expected_logs[i], 2e-6 * std::abs(expected_logs[i]));
          }
        }
      }
    }
  }
}

TEST_P(SamplingTest, TopKKeepsTies) {
  Machine machine(GetParam());
  std::map<std::int32_t, int> counts;
  for (const std::int32_t token : Rows(machine, {1, 2, 2, 2, 0}, 300, {.top_k = 2}).draw()) {
    ++counts[token];
  }
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_FALSE(counts.contains(0));
}

// Many ties, of which the mass takes a part: those with the lowest numbers.
TEST_P(SamplingTest, TopPTakesTiesByNumber) {
  Machine machine(GetParam());
  std::map<std::int32_t, int> counts;
  const std::vector<double> flat(3000, 0.5);
  for (const std::int32_t token : Rows(machine, flat, 2000, {.top_p = 0.01}).draw()) {
    ++counts[token];
  }
  EXPECT_EQ(counts.size(), 30u);
  EXPECT_EQ(counts.rbegin()->first, 29);
}

TEST_P(SamplingTest, DependsOnKeyAndCountOnly) {
  const std::vector<double> logits = random_logits(1000, 0.1, 2);
  Machine machine(GetParam());
  Rows rows(machine, logits, 3, {}), more(machine, logits, 8, {});
  const Tokens first = rows.draw(), second = rows.draw(), third = rows.draw();
  EXPECT_NE(first, second);
  EXPECT_NE(first[0], first[1]);
  const auto three = [](const Tokens& tokens) {
    return Tokens(tokens.begin(), tokens.begin() + 3);
  };
  EXPECT_EQ(three(more.draw()), first);
  EXPECT_EQ(three(more.draw()), second);
  EXPECT_EQ(three(more.draw()), third);
}

TEST_P(SamplingTest, RowsThatAreNotActiveDrawNothing) {
  const std::vector<double> logits = random_logits(1000, 0.1, 2);
  Machine machine(GetParam());
  Rows rows(machine, logits, 3, {});
  const Tokens first = rows.draw();
  rows.deactivate(1);
  const Tokens second = rows.draw();
  EXPECT_EQ(second[1], first[1]);
  EXPECT_NE(second[0], first[0]);
}

TEST_P(SamplingTest, GreedyTakesTheBestAfterThePenalty) {
  const std::vector<double> logits = {-1, 3, 2.5, -0.5};
  Machine machine(GetParam());
  for (const SamplingOptions& options :
       {SamplingOptions{.greedy = true}, SamplingOptions{.temperature = 0},
        SamplingOptions{.top_k = 1}}) {
    EXPECT_EQ(Rows(machine, logits, 1, options).draw(), Tokens{1});
  }
  Rows rows(machine, logits, 1, {.greedy = true, .repetition_penalty = 1.25});
  // The model's own probability, without the penalty.
  const double total = std::exp(-1.0) + std::exp(3.0) + std::exp(2.5) + std::exp(-0.5);
  EXPECT_EQ(rows.draw(), Tokens{1});
  EXPECT_NEAR(rows.log_probabilities()[0], 3 - std::log(total), 1e-6);
  EXPECT_EQ(rows.draw(), Tokens{2});  // 3 / 1.25 < 2.5
  EXPECT_NEAR(rows.log_probabilities()[0], 2.5 - std::log(total), 1e-6);
  EXPECT_EQ(Rows(machine, {1, 4, 4, 4}, 1, {.greedy = true}).draw(), Tokens{1});
}

// OpenAI's penalties count what was drawn, not what the sequence had before.
TEST_P(SamplingTest, DrawnTokensAreSubtractedFrom) {
  const std::vector<double> logits = {3, 2.5, 1.9, -5};
  Machine machine(GetParam());
  const auto draws = [&](const SamplingOptions& options, int count) {
    Rows rows(machine, logits, 1, options, {1});
    Tokens tokens;
    for (int i = 0; i < count; ++i) {
      tokens.push_back(rows.draw()[0]);
    }
    return tokens;
  };
  EXPECT_EQ(draws({.greedy = true, .presence_penalty = 1}, 5), (Tokens{0, 1, 0, 0, 0}));
  EXPECT_EQ(draws({.greedy = true, .frequency_penalty = 0.4}, 6), (Tokens{0, 0, 1, 0, 1, 2}));
}

TEST_P(SamplingTest, OneTokenMayNotFollowAnother) {
  Machine machine(GetParam());
  Rows rows(machine, {1, 5, 3}, 1, {.greedy = true, .banned = 1, .banned_after = 1});
  EXPECT_EQ(rows.draw(), Tokens{1});
  EXPECT_EQ(rows.draw(), Tokens{2});
  EXPECT_EQ(rows.draw(), Tokens{1});
}

TEST_P(SamplingTest, MassFallsToItsBound) {
  const SamplingOptions options{.top_p = 0.8, .top_p_decay = 0.5, .top_p_bound = 0.3};
  EXPECT_EQ(options.top_p_after(0), 0.8);
  EXPECT_EQ(options.top_p_after(1), 0.4);
  EXPECT_EQ(options.top_p_after(2), 0.3);
}

TEST_P(SamplingTest, TopTokensInOrder) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  for (const std::int64_t size : {7, 5003}) {
    std::vector<double> numbers = random_logits(static_cast<std::size_t>(2 * size), 3, 9);
    numbers[static_cast<std::size_t>(size) + 3] = numbers[static_cast<std::size_t>(size) + 1];
    const Tensor logits = to_device(stream, DType::fp32, numbers).reshape({2, size});
    const Tensor state = Tensor::from_host(stream,
                                           Tokens{/*rows*/ 1, 0, 1, /*active*/ 1, 0, 1,
                                                  /*step*/ 3},
                                           {7});
    PinnedMemory ring(GetParam(), 2 * 3 * TopTokens::kMost * sizeof(Drawn));
    auto* const out = static_cast<Drawn*>(ring.data());
    std::fill_n(out, 2 * 3 * TopTokens::kMost, Drawn{-7, 0});
    const auto* const all = static_cast<const std::int32_t*>(state.data());
    launch(stream, TopTokens{.count = 3,
                             .logits = logits,
                             .vocabulary = size,
                             .logit_rows = all,
                             .active = all + 3,
                             .step = all + 6,
                             .ring = out,
                             .ring_steps = 2,
                             .ring_rows = 3});
    stream.synchronize();
    EXPECT_EQ(out[0].token, -7);  // another step
    const Drawn* const found = out + 3 * TopTokens::kMost;
    EXPECT_EQ(found[TopTokens::kMost].token, -7);  // not active
    std::vector<float> row(numbers.begin() + size, numbers.end());
    std::vector<Drawn> expected(TopTokens::kMost);
    top_tokens(row, expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i].token, expected[i].token);
      EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-5);
      if (i > 0 && expected[i].token >= 0) {
        const float better = row[static_cast<std::size_t>(expected[i - 1].token)],
                    worse = row[static_cast<std::size_t>(expected[i].token)];
        EXPECT_TRUE(better > worse ||
                    (better == worse && expected[i - 1].token < expected[i].token));
      }
    }
    EXPECT_EQ(std::count_if(
                  row.begin(), row.end(),
                  [&](float x) { return x > row[static_cast<std::size_t>(expected[0].token)]; }),
              0);
  }
}

TEST_P(SamplingTest, LogitsThatAreNoNumbersAreFound) {
  for (const std::vector<double>& logits :
       {std::vector<double>{1, NAN, 2}, {NAN, 1, 0}, {1, INFINITY}, {-INFINITY, -INFINITY}}) {
    for (const SamplingOptions& options :
         {SamplingOptions{}, {.greedy = true}, {.top_k = 2}, {.top_p = 0.5}}) {
      Machine machine(GetParam());
      Rows rows(machine, logits, 1, options);
      if (GetParam() == DeviceKind::cpu) {
        EXPECT_THROW(rows.draw(), Error);
      } else {
        rows.draw();
        EXPECT_TRUE(std::isnan(rows.log_probabilities()[0]));
      }
    }
  }
}

TEST_P(SamplingTest, RowsAdvance) {
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  const Tensor state = Tensor::from_host(
      stream,
      Tokens{5, 6, 7, 8, /*lengths*/ 3, 4, 5, 6, /*active*/ 1, 1, 1, 0, /*left*/ 3, 1, 2, 9}, {16});
  const Tensor logs = Tensor::from_host<float>(stream, {-1, -2, -3, -4}, {4});
  const Tensor step = Tensor::from_host(stream, Tokens{5}, {1});
  PinnedMemory ring(GetParam(), 3 * 4 * sizeof(Drawn));
  auto* const numbers = static_cast<std::int32_t*>(state.data());
  auto* const out = static_cast<Drawn*>(ring.data());
  AdvanceRows kernel{.count = 4,
                     .fed = true,
                     .tokens = numbers,
                     .log_probabilities = static_cast<const float*>(logs.data()),
                     .lengths = numbers + 4,
                     .active = numbers + 8,
                     .left = numbers + 12,
                     .num_ends = 1,
                     .ends = {7},
                     .step = static_cast<std::int32_t*>(step.data()),
                     .ring = out,
                     .ring_steps = 3,
                     .ring_rows = 4};
  launch(stream, kernel);
  EXPECT_EQ(state.to_host<std::int32_t>(stream),
            (Tokens{5, 0, 0, 8, 4, 0, 0, 6, 1, 0, 0, 0, 2, 0, 1, 9}));
  EXPECT_EQ(step.to_host<std::int32_t>(stream), Tokens{6});
  const Tokens drawn = {5, 6, 7, -1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(out[2 * 4 + i].token, drawn[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(out[2 * 4 + 2].log_probability, -3);
}

}  // namespace
}  // namespace bloomery::testing
