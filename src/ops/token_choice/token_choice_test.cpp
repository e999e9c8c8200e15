#include "ops/token_choice/token_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t sequences, length, kept, columns;
  TokenRange part, held;  // of the chosen rows, and of the batch's tokens
};

std::vector<Sizes> all_sizes() {
  return {{1, 2, 1, 3, {}, {}},
          {3, 7, 4, 8, {}, {}},
          {2, 300, 100, 5, {}, {}},
          {4, 600, 513, 33, {13, 700}, {600, 700}},
          {2, 16, 8, 129, {8, 8}, {16, 16}}};
}

void fill(Batch& batch, Inputs& in, const Sizes& s) {
  batch.num_sequences = s.sequences;
  batch.length = s.length;
  batch.samples = in.tensor("samples");
}

OpCase case_of(const Sizes& s, std::int64_t rows) {
  OpCase each{
      .name = concat("sequences=", s.sequences, ",length=", s.length, ",kept=", s.kept),
      .inputs = {{.name = "x", .shape = {rows, s.columns}},
                 {.name = "samples", .role = Role::int64, .shape = {s.sequences}, .limit = 1000}},
      .tolerance = {{DType::fp32, 0.0}, {DType::bf16, 0.0}, {DType::fp16, 0.0}}};
  each.batch = [s](Batch& batch, Inputs& in) { fill(batch, in, s); };
  return each;
}

std::vector<OpCase> take_cases() {
  std::vector<OpCase> cases;
  for (const Sizes& s : all_sizes()) {
    cases.push_back(case_of(s, s.sequences * s.length));
    cases.back().forward = [s](Context& context, Inputs& in) -> Outputs {
      const TokenChoice choice = choose_tokens(context, 7, s.kept);
      return {{"y", take_chosen(context, in.value("x"), choice, s.part)}};
    };
  }
  return cases;
}

std::vector<OpCase> put_cases() {
  std::vector<OpCase> cases;
  for (const Sizes& s : all_sizes()) {
    const std::int64_t all = s.sequences * s.length;
    cases.push_back(case_of(s, s.held.count == TokenRange::kRest ? all : s.held.count));
    cases.back().inputs.push_back({.name = "fresh", .shape = {s.sequences * s.kept, s.columns}});
    cases.back().forward = [s](Context& context, Inputs& in) -> Outputs {
      const TokenChoice choice = choose_tokens(context, 7, s.kept);
      return {{"y", put_chosen(context, in.value("x"), in.value("fresh"), choice, s.held)}};
    };
  }
  return cases;
}

const bool kRegistered =
    register_op_tests("take_chosen", take_cases()) && register_op_tests("put_chosen", put_cases());

struct Fixture {
  explicit Fixture(DeviceKind kind = DeviceKind::cpu)
      : device({.kind = kind, .poison = true}), stream(device) {}

  Context context(const std::vector<std::int64_t>& samples, std::int64_t length) {
    batch.num_sequences = static_cast<std::int64_t>(samples.size());
    batch.length = length;
    batch.samples = Tensor::from_host(stream, samples, {batch.num_sequences});
    return {.stream = stream, .mesh = mesh, .batch = batch};
  }

  Device device;
  Stream stream;
  Mesh mesh = Mesh::single();
  Batch batch;
};

TEST(TokenChoice, IsSortedDistinctAndAFunctionOfTheSample) {
  Fixture f;
  Context context = f.context({5, 9, 5}, 50);
  const TokenChoice choice = choose_tokens(context, 11, 20);
  const auto rows = choice.rows.to_host<std::int32_t>(f.stream);
  const auto number = choice.number.to_host<std::int32_t>(f.stream);
  for (std::int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(rows[i] / 50, i / 20);
    EXPECT_TRUE(i % 20 == 0 || rows[i] > rows[i - 1]);
    EXPECT_EQ(number[rows[i]], i);
    EXPECT_EQ(rows[i % 20] % 50, rows[40 + i % 20] % 50);  // the same sample
  }
  EXPECT_EQ(std::ranges::count(number, -1), 90);
  EXPECT_FALSE(std::equal(rows.begin(), rows.begin() + 20, rows.begin() + 20,
                          [](auto a, auto b) { return a % 50 == b % 50; }));
}

TEST(TokenChoice, TakesEveryPlaceEquallyOften) {
  Fixture f;
  std::vector<std::int64_t> samples(4000);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<std::int64_t>(i);
  }
  Context context = f.context(samples, 16);
  const auto rows = choose_tokens(context, 3, 6).rows.to_host<std::int32_t>(f.stream);
  std::vector<int> counts(16);
  for (const std::int32_t row : rows) {
    ++counts[row % 16];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 4000 * 6 / 16, 160);  // more than five deviations
  }
}

TEST(TokenChoice, RangesOfKeysAreCountedInChosenTokens) {
  Fixture f;
  Context context = f.context({1, 2}, 12);
  std::vector<std::int32_t> positions(24), begin(24), end(24);
  for (std::int32_t t = 0; t < 24; ++t) {
    const std::int32_t place = t % 12;
    positions[t] = place < 5 ? place : place - 5;
    begin[t] = place < 5 ? 0 : 5;
    end[t] = 12;
  }
  f.batch.positions = Tensor::from_host(f.stream, positions, {24});
  f.batch.key_begin = Tensor::from_host(f.stream, begin, {24});
  f.batch.key_end = Tensor::from_host(f.stream, end, {24});
  const TokenChoice choice = choose_tokens(context, 3, 6);
  const Batch chosen = chosen_batch(context, choice);
  const auto rows = choice.rows.to_host<std::int32_t>(f.stream);
  const auto of_chosen = [&](const Tensor& t) { return t.to_host<std::int32_t>(f.stream); };
  for (std::int64_t i = 0; i < 12; ++i) {
    const std::int64_t first = i / 6 * 6;
    const auto before = std::count_if(rows.begin() + first, rows.begin() + first + 6,
                                      [](std::int32_t row) { return row % 12 < 5; });
    EXPECT_EQ(of_chosen(chosen.positions)[i], positions[rows[i]]);
    EXPECT_EQ(of_chosen(chosen.key_begin)[i], rows[i] % 12 < 5 ? 0 : before);
    EXPECT_EQ(of_chosen(chosen.key_end)[i], 6);
  }
  EXPECT_EQ(chosen.length, 6);
}

TEST(TokenChoice, IsTheSameOnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU";
  }
  Fixture cpu, cuda(DeviceKind::cuda);
  for (const auto& [length, kept] : {std::pair{2, 1}, {257, 256}, {2048, 128}, {5000, 4999}}) {
    Context here = cpu.context({0, 1, 77, 1LL << 41}, length);
    Context there = cuda.context({0, 1, 77, 1LL << 41}, length);
    const TokenChoice a = choose_tokens(here, 5, kept), b = choose_tokens(there, 5, kept);
    EXPECT_EQ(a.rows.to_host<std::int32_t>(cpu.stream), b.rows.to_host<std::int32_t>(cuda.stream));
    EXPECT_EQ(a.number.to_host<std::int32_t>(cpu.stream),
              b.number.to_host<std::int32_t>(cuda.stream));
  }
}

}  // namespace
}  // namespace bloomery::testing
