#include "ops/embedding/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/mesh.h"
#include "harness/device_test.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t tokens = 1, rows = 1, hidden = 1;
  std::int64_t first_token = 0, vocabulary = 0;  // 0: first_token + rows
  std::int64_t max_positions = 0;                // 0: no position table
  std::int64_t num_types = 0;                    // 0: no table of token types
  bool add_positions = true;
  bool fp32_result = false;
  std::vector<std::int64_t> ids;  // empty: drawn from the vocabulary
};

// y[t] = (row(t) in the table ? table[row(t)] : 0) + (add_positions ? position_table[positions[t]]
// : 0) with row(t) = tokens[t] - first_token. Gradients: grad.table[r] = sum of grad_y[t] over
// row(t) = r; grad.position_table[p] = sum of grad_y[t] over positions[t] = p, also when
// add_positions = 0. result = fp32: y is fp32 whatever the dtype of the tables. A table of types is
// like that of positions.
OpCase embedding_case(const std::string& name, const Sizes& sizes) {
  const std::int64_t vocabulary =
      sizes.vocabulary > 0 ? sizes.vocabulary : sizes.first_token + sizes.rows;
  OpCase result{.name = name};
  result.inputs = {{.name = "table", .role = Role::parameter, .shape = {sizes.rows, sizes.hidden}},
                   {.name = "tokens",
                    .role = Role::int32,
                    .shape = {sizes.tokens},
                    .limit = vocabulary,
                    .integers = sizes.ids}};
  if (sizes.max_positions > 0) {
    result.inputs.push_back({.name = "position_table",
                             .role = Role::parameter,
                             .shape = {sizes.max_positions, sizes.hidden}});
    result.inputs.push_back({.name = "positions",
                             .role = Role::int32,
                             .shape = {sizes.tokens},
                             .limit = sizes.max_positions});
  }
  if (sizes.num_types > 0) {
    result.inputs.push_back(
        {.name = "type_table", .role = Role::parameter, .shape = {sizes.num_types, sizes.hidden}});
    result.inputs.push_back(
        {.name = "types", .role = Role::int32, .shape = {sizes.tokens}, .limit = sizes.num_types});
    // One rounding; PyTorch rounds the sum of two before it adds the third.
    result.tolerance = {{DType::fp32, 3e-7}, {DType::bf16, 2e-3}, {DType::fp16, 3e-4}};
  }
  result.batch = [sizes](Batch& batch, Inputs& in) {
    batch.num_sequences = 1;
    batch.length = sizes.tokens;
    batch.tokens = in.tensor("tokens");
    if (sizes.max_positions > 0) {
      batch.positions = in.tensor("positions");
    }
    if (sizes.num_types > 0) {
      batch.token_types = in.tensor("types");
    }
  };
  result.forward = [sizes, vocabulary](Context& context, Inputs& in) -> Outputs {
    EmbeddingOptions options{.first_token = sizes.first_token, .num_tokens = vocabulary};
    if (sizes.max_positions > 0) {
      options.positions = &in.parameter("position_table");
      options.add_replicated = sizes.add_positions;
    }
    if (sizes.num_types > 0) {
      options.types = &in.parameter("type_table");
    }
    if (sizes.fp32_result) {
      options.dtype = accumulation_dtype(in.dtype);
    }
    return {{"y", embedding(context, in.parameter("table"), options)}};
  };
  // The table that is not added has a gradient all the same.
  result.finite_differences = sizes.add_positions;
  result.attributes = {{"first_token", concat(sizes.first_token)},
                       {"add_positions", sizes.add_positions ? "1" : "0"},
                       {"result", sizes.fp32_result ? "fp32" : "same"}};
  return result;
}

std::vector<std::int64_t> hot_ids(std::int64_t tokens, std::int64_t hot, std::int64_t rows) {
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < tokens; ++t) {
    ids.push_back(t % 7 == 3 ? (t * 5) % rows : hot);
  }
  return ids;
}

std::vector<OpCase> embedding_cases() {
  return {
      embedding_case("one", {}),
      embedding_case("tokens=37,rows=11,hidden=5", {.tokens = 37, .rows = 11, .hidden = 5}),
      embedding_case("tokens=300,rows=97,hidden=130", {.tokens = 300, .rows = 97, .hidden = 130}),
      embedding_case("tokens=64,rows=500,hidden=64,sparse",
                     {.tokens = 64, .rows = 500, .hidden = 64}),
      embedding_case("tokens=70,rows=13,hidden=24,positions",
                     {.tokens = 70, .rows = 13, .hidden = 24, .max_positions = 35}),
      embedding_case(
          "tokens=70,rows=13,hidden=24,positions_elsewhere",
          {.tokens = 70, .rows = 13, .hidden = 24, .max_positions = 35, .add_positions = false}),
      embedding_case("tokens=70,rows=13,hidden=24,positions,types",
                     {.tokens = 70, .rows = 13, .hidden = 24, .max_positions = 35, .num_types = 2}),
      embedding_case("tokens=41,rows=13,hidden=7,types",
                     {.tokens = 41, .rows = 13, .hidden = 7, .num_types = 3}),
      embedding_case("tokens=129,rows=10,hidden=16,shard", {.tokens = 129,
                                                            .rows = 10,
                                                            .hidden = 16,
                                                            .first_token = 10,
                                                            .vocabulary = 37,
                                                            .max_positions = 129}),
      embedding_case(
          "tokens=33,rows=9,hidden=32,fp32_result",
          {.tokens = 33, .rows = 9, .hidden = 32, .max_positions = 40, .fp32_result = true}),
      embedding_case("tokens=700,rows=19,hidden=40,hot",
                     {.tokens = 700, .rows = 19, .hidden = 40, .ids = hot_ids(700, 4, 19)}),
      embedding_case(
          "tokens=257,rows=3,hidden=1100,one_row",
          {.tokens = 257, .rows = 3, .hidden = 1100, .ids = std::vector<std::int64_t>(257, 1)}),
  };
}

const bool kRegistered = register_op_tests("embedding", embedding_cases());

class EmbeddingTest : public ::testing::Test {
 protected:
  Parameter table(const Shape& shape) {
    Parameter parameter = make_parameter("table", Box::whole(shape), {}, true);
    parameter.value = Tensor::zeros(stream, DType::fp32, shape);
    parameter.grad = Tensor::empty(stream, DType::fp32, shape);
    return parameter;
  }
  void set_tokens(const std::vector<std::int32_t>& tokens) {
    batch.tokens = Tensor::from_host(stream, tokens, {static_cast<std::int64_t>(tokens.size())});
  }

  Device device{{.num_threads = 2, .poison = true}};
  Stream stream{device};
  Mesh mesh = Mesh::single();
  Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
};

TEST_F(EmbeddingTest, RejectsIdsOutsideTheVocabulary) {
  Parameter parameter = table({5, 8});
  set_tokens({0, 4, 5});
  EXPECT_THROW(embedding(context, parameter), Error);
  EXPECT_NO_THROW(embedding(context, parameter, {.num_tokens = 6}));
  set_tokens({0, -1});
  EXPECT_THROW(embedding(context, parameter), Error);
}

TEST_F(EmbeddingTest, RejectsTablesThatDoNotFit) {
  Parameter tokens = table({5, 8}), positions = table({16, 9});
  set_tokens({1, 2});
  batch.positions = batch.tokens;
  EXPECT_THROW(embedding(context, tokens, {.positions = &positions}), Error);
  positions = table({16, 8});
  EXPECT_NO_THROW(embedding(context, tokens, {.positions = &positions}));
  batch.positions = Tensor();
  EXPECT_THROW(embedding(context, tokens, {.positions = &positions}), Error);
  EXPECT_THROW(embedding(context, tokens, {.types = &positions}), Error);  // no ids
  EXPECT_THROW(embedding(context, tokens, {.dtype = DType::bf16}), Error);
}

TEST_F(EmbeddingTest, ClearsTheGradientWhenThereAreNoTokens) {
  Parameter parameter = table({3, 4});
  set_tokens({});
  Tape tape(stream);
  context.tape = &tape;
  const Value y = embedding(context, parameter);
  EXPECT_EQ(y.shape(), (Shape{0, 4}));
  tape.set_grad(y.slot, Tensor::empty(stream, DType::fp32, {0, 4}));
  tape.backward();
  EXPECT_EQ(parameter.grad.to_host<float>(stream), std::vector<float>(12, 0.0f));
}

// What --embedding-weights-in-fp32 asks for in Megatron: rows as they are, gradients summed in fp32
// (in bf16 a sum of ones ends at 256), and the same output whether the table was widened or not.
TEST_F(EmbeddingTest, SumsGradientsOfABf16TableInFp32) {
  constexpr std::int64_t kTokens = 600;
  Parameter parameter = table({3, 4});
  std::vector<bfloat16> rows;
  for (int i = 0; i < 12; ++i) {
    rows.emplace_back(0.1f * static_cast<float>(i));
  }
  parameter.value = Tensor::from_host(stream, rows, {3, 4});
  set_tokens(std::vector<std::int32_t>(kTokens, 1));
  Tape tape(stream);
  context.tape = &tape;
  const Value y = embedding(context, parameter);
  const auto output = y.data.to_host<bfloat16>(stream);
  EXPECT_EQ(output[0].bits, rows[4].bits);
  EXPECT_EQ(output.back().bits, rows[7].bits);
  tape.set_grad(
      y.slot,
      Tensor::from_host(stream, std::vector<bfloat16>(kTokens * 4, bfloat16(1.0f)), {kTokens, 4}));
  tape.backward();
  EXPECT_EQ(parameter.grad.to_host<float>(stream),
            (std::vector<float>{0, 0, 0, 0, 600, 600, 600, 600, 0, 0, 0, 0}));
}

class EmbeddingGradient : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingGradient, every_device(), device_label);

// Summed in fp32 and rounded once.
TEST_P(EmbeddingGradient, OfABf16TableIsThatOfFp32Rounded) {
  constexpr std::int64_t kTokens = 600, kRows = 40;
  Machine machine(GetParam());
  Stream& stream = machine.stream;
  std::vector<std::int32_t> ids;
  for (int t = 0; t < kTokens; ++t) {
    ids.push_back(t % 7 == 0 ? 3 : t * t % static_cast<int>(kRows - 1));
  }
  const Tensor tokens = Tensor::from_host(stream, ids, {kTokens});
  const auto numbers = [&](std::int64_t count, double step) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back(std::sin(step * static_cast<double>(i)));
    }
    return all;
  };
  for (const std::int64_t width : {24, 7}) {
    const Tensor grad =
        to_device(stream, DType::bf16, numbers(kTokens * width, 1.3)).reshape({kTokens, width});
    for (const bool add : {false, true}) {
      const Tensor narrow =
          to_device(stream, DType::bf16, numbers(kRows * width, 0.7)).reshape({kRows, width});
      const Tensor wide =
          to_device(stream, DType::fp32, to_doubles(stream, narrow)).reshape({kRows, width});
      for (const Tensor& table : {narrow, wide}) {
        launch(stream, EmbeddingBackward{.grad_y = grad,
                                         .rows = {.ids = tokens, .limit = kRows},
                                         .grad_table = table,
                                         .add = add});
      }
      const Tensor rounded = to_device(stream, DType::bf16, to_doubles(stream, wide));
      EXPECT_EQ(to_doubles(stream, narrow), to_doubles(stream, rounded)) << width << ' ' << add;
    }
  }
}

}  // namespace
}  // namespace bloomery::testing
