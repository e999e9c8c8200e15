#include "ops/linear/linear.h"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "comm/mesh.h"
#include "harness/op_harness.h"
#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery::testing {
namespace {

struct LinearShape {
  std::int64_t rows, in, out;
};

// y = f(x weight^T + bias), x [rows, in], weight [out, in], bias [out]; f is the attribute
// "activation" (none, gelu_tanh, gelu_erf, silu, relu, squared_relu); no bias if "bias" is "no".
OpCase linear_case(const LinearShape& shape, bool with_bias, Activation activation) {
  const auto [rows, in, out] = shape;
  OpCase result{
      .name = concat("rows=", rows, ",in=", in, ",out=", out, ",", name(activation),
                     with_bias ? ",bias" : ""),
      .inputs = {{.name = "x", .shape = {rows, in}},
                 {.name = "weight", .role = Role::parameter, .shape = {out, in}, .deviation = 0.5}},
      .forward = [=](Context& context, Inputs& inputs) -> Outputs {
        return {{"y", linear(context, inputs.value("x"), inputs.parameter("weight"),
                             with_bias ? &inputs.parameter("bias") : nullptr,
                             {.activation = activation})}};
      },
      .attributes = {{"activation", name(activation)}, {"bias", with_bias ? "yes" : "no"}},
      .finite_differences = rows * in * out < 5000 && activation != Activation::relu};
  if (with_bias) {
    result.inputs.push_back({.name = "bias", .role = Role::parameter, .shape = {out}});
  }
  return result;
}

std::vector<OpCase> linear_cases() {
  std::vector<OpCase> cases;
  for (const LinearShape& shape :
       {LinearShape{1, 1, 1}, LinearShape{0, 5, 3}, LinearShape{7, 13, 11}, LinearShape{1, 31, 257},
        LinearShape{128, 128, 128}, LinearShape{131, 67, 193}, LinearShape{257, 640, 384},
        LinearShape{1, 1024, 96}}) {
    cases.push_back(linear_case(shape, true, Activation::none));
  }
  cases.push_back(linear_case({17, 19, 23}, false, Activation::none));
  cases.push_back(linear_case({128, 256, 512}, false, Activation::none));
  for (const Activation activation : {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu,
                                      Activation::relu, Activation::squared_relu}) {
    cases.push_back(linear_case({5, 7, 9}, true, activation));
    cases.push_back(linear_case({64, 96, 160}, true, activation));
    cases.push_back(linear_case({33, 8, 16}, false, activation));
  }
  return cases;
}

// y = f(x weight1^T + bias1) weight2^T + bias2: the second layer applies f' while it writes the
// gradient of the hidden value.
std::vector<OpCase> mlp_cases() {
  std::vector<OpCase> cases;
  for (const Activation activation :
       {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::squared_relu}) {
    for (const std::int64_t width : {9, 64}) {
      cases.push_back({.name = concat("width=", width, ",", name(activation)),
                       .inputs = {{.name = "x", .shape = {13, width}},
                                  {.name = "weight1",
                                   .role = Role::parameter,
                                   .shape = {4, width, width},
                                   .deviation = 0.3},
                                  {.name = "bias1", .role = Role::parameter, .shape = {4 * width}},
                                  {.name = "weight2",
                                   .role = Role::parameter,
                                   .shape = {width, 4 * width},
                                   .deviation = 0.3},
                                  {.name = "bias2", .role = Role::parameter, .shape = {width}}},
                       .forward = [=](Context& context, Inputs& in) -> Outputs {
                         const Value hidden =
                             linear(context, in.value("x"), in.parameter("weight1"),
                                    &in.parameter("bias1"), {.activation = activation});
                         return {{"y", linear(context, hidden, in.parameter("weight2"),
                                              &in.parameter("bias2"))}};
                       },
                       .attributes = {{"activation", name(activation)}},
                       .finite_differences = width < 20});
    }
  }
  return cases;
}

// h = gelu_tanh(x weight^T); left = h weight_left^T, right = h weight_right^T and, if `plain`,
// h2 = 0.5 h, between the two or after them. The gradients of h arrive multiplied by the
// derivative from the linear consumers and not multiplied from scale.
std::vector<OpCase> shared_cases() {
  std::vector<OpCase> cases;
  for (const std::string order : {"linear_linear", "linear_scale", "scale_linear", "all"}) {
    cases.push_back(
        {.name = order,
         .inputs =
             {{.name = "x", .shape = {6, 10}},
              {.name = "weight", .role = Role::parameter, .shape = {12, 10}, .deviation = 0.4},
              {.name = "weight_left", .role = Role::parameter, .shape = {5, 12}},
              {.name = "weight_right", .role = Role::parameter, .shape = {7, 12}}},
         .forward = [=](Context& context, Inputs& in) -> Outputs {
           const Value h = linear(context, in.value("x"), in.parameter("weight"), nullptr,
                                  {.activation = Activation::gelu_tanh});
           Outputs outputs;
           if (order == "scale_linear") {
             outputs.emplace_back("h2", scale(context, h, 0.5f));
           }
           outputs.emplace_back("left", linear(context, h, in.parameter("weight_left"), nullptr));
           if (order == "linear_scale" || order == "all") {
             outputs.emplace_back("h2", scale(context, h, 0.5f));
           }
           outputs.emplace_back("right", linear(context, h, in.parameter("weight_right"), nullptr));
           return outputs;
         },
         .attributes = {{"order", order}}});
  }
  return cases;
}

// y = x weight^T; the gradient of bias is still the column sums of the gradient of y.
std::vector<OpCase> unadded_bias_cases() {
  return {{.name = "rows=9,in=6,out=10",
           .inputs = {{.name = "x", .shape = {9, 6}},
                      {.name = "weight", .role = Role::parameter, .shape = {10, 6}},
                      {.name = "bias", .role = Role::parameter, .shape = {10}}},
           .forward = [](Context& context, Inputs& in) -> Outputs {
             return {{"y", linear(context, in.value("x"), in.parameter("weight"),
                                  &in.parameter("bias"), {.add_bias = false})}};
           },
           .finite_differences = false}};
}

const bool kRegistered = register_op_tests("linear", linear_cases()) &&
                         register_op_tests("linear_mlp", mlp_cases()) &&
                         register_op_tests("linear_shared", shared_cases()) &&
                         register_op_tests("linear_unadded_bias", unadded_bias_cases());

class LinearTest : public ::testing::Test {
 protected:
  Parameter parameter(const std::string& name, const Shape& shape) {
    Parameter made = make_parameter(name, Box::whole(shape), {}, true);
    made.value = Tensor::zeros(stream_, DType::fp32, shape);
    made.grad = Tensor::empty(stream_, DType::fp32, shape);
    return made;
  }

  Device device_{{.num_threads = 2}};
  Stream stream_{device_};
  Mesh mesh_ = Mesh::single();
  Batch batch_;
  Tape tape_{stream_};
  Context context_{.stream = stream_, .mesh = mesh_, .batch = batch_, .tape = &tape_};
};

TEST_F(LinearTest, RefusesOperandsThatDoNotFit) {
  Parameter weight = parameter("w", {4, 6});
  Parameter bias = parameter("b", {5});
  const Value narrow = context_.wrap(Tensor::zeros(stream_, DType::fp32, {3, 5}));
  const Value x = context_.wrap(Tensor::zeros(stream_, DType::fp32, {3, 6}));
  const Value half = context_.wrap(Tensor::zeros(stream_, DType::bf16, {3, 6}));
  EXPECT_THROW(linear(context_, narrow, weight, nullptr), Error);
  EXPECT_THROW(linear(context_, x, weight, &bias), Error);
  EXPECT_THROW(linear(context_, half, weight, nullptr), Error);
}

TEST_F(LinearTest, RunningOutOfMemoryNamesTheOpAndTheShape) {
  const auto message_of = [](const std::function<void()>& greedy) -> std::string {
    try {
      greedy();
      return "nothing was thrown";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto expect_parts = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  };
  constexpr std::int64_t kMany = 1 << 22;  // of each a few bytes, of the product 64 TiB
  Parameter weight = parameter("w", {kMany, 1});
  const Value x = context_.wrap(Tensor::zeros(stream_, DType::fp32, {kMany, 1}));
  expect_parts(message_of([&] { linear(context_, x, weight, nullptr); }),
               {"of linear (", "fp32[4194304, 4194304]", "out of memory"});

  Parameter small = parameter("w", {1, 1});
  const Value y = linear(context_, x, small, nullptr);
  tape_.set_grad(y.slot, Tensor::zeros(stream_, DType::fp32, {kMany, 1}));
  x.slot->shape = {kMany, kMany};
  expect_parts(message_of([&] { tape_.backward(); }),
               {"linear.cpp:", "fp32[4194304, 4194304]", "out of memory"});
}

TEST_F(LinearTest, DeferredWeightGradientsAreTheSame) {
  std::vector<std::vector<float>> results;
  for (const bool deferred : {false, true}) {
    Parameter first = parameter("w1", {24, 10}), second = parameter("w2", {6, 24});
    first.init = second.init = {.kind = Init::Kind::normal, .scale = 0.5};
    initialize(first, 7, stream_);
    initialize(second, 7, stream_);
    WeightQueue queue;
    Tape tape(stream_);
    tape.deferred = deferred ? &queue : nullptr;
    Context context{.stream = stream_, .mesh = mesh_, .batch = batch_, .tape = &tape};
    std::vector<float> ones(80, 0.75f);
    const Value x = context.wrap(Tensor::from_host(stream_, ones, {8, 10}));
    const Value y =
        linear(context, linear(context, x, first, nullptr, {Activation::silu}), second, nullptr);
    tape.set_grad(y.slot, Tensor::from_host(stream_, std::vector<float>(48, 0.5f), {8, 6}));
    tape.backward();
    queue.run_all();
    std::vector<float> all = first.grad.to_host<float>(stream_);
    const std::vector<float> more = second.grad.to_host<float>(stream_);
    all.insert(all.end(), more.begin(), more.end());
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(LinearTest, WithoutATapeNothingIsKept) {
  Parameter weight = parameter("w", {4, 6});
  Context inference{.stream = stream_, .mesh = mesh_, .batch = batch_};
  const Value x{Tensor::zeros(stream_, DType::fp32, {2, 3, 6}), nullptr};
  const Value y = linear(inference, x, weight, nullptr, {.activation = Activation::gelu_erf});
  EXPECT_EQ(y.shape(), (Shape{6, 4}));
  EXPECT_FALSE(y.wants_grad());
}

}  // namespace
}  // namespace bloomery::testing
