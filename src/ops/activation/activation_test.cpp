#include "ops/activation/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

constexpr Activation kActivations[] = {Activation::gelu_tanh, Activation::gelu_erf,
                                       Activation::silu, Activation::relu,
                                       Activation::squared_relu};

// Among many arguments one lies within a finite-difference step of the kink.
bool smooth_at_zero(Activation kind) {
  return kind != Activation::relu && kind != Activation::squared_relu;
}

// y = f(x), f named by the attribute "activation":
//   gelu_tanh     x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
//   gelu_erf      x (1 + erf(x / sqrt 2)) / 2
//   silu          x / (1 + exp(-x))
//   relu          max(x, 0)
//   squared_relu  max(x, 0)^2
OpCase activation_case(Activation kind, const std::string& name, const Shape& shape,
                       double deviation) {
  return {.name = name,
          .inputs = {{.name = "x", .shape = shape, .deviation = deviation}},
          .forward = [kind](Context& context, Inputs& in) -> Outputs {
            return {{"y", activation(context, in.value("x"), kind)}};
          },
          .attributes = {{"activation", bloomery::name(kind)}}};
}

std::vector<OpCase> activation_cases() {
  std::vector<OpCase> cases;
  for (const Activation kind : kActivations) {
    for (const std::int64_t count : {1, 13, 1024, 8209}) {
      cases.push_back(
          activation_case(kind, concat(bloomery::name(kind), ",count=", count), {count}, 2.0));
      cases.back().finite_differences = smooth_at_zero(kind) || count < 100;
    }
    // Large arguments: saturated tails, no overflow inside.
    OpCase wide = activation_case(kind, concat(bloomery::name(kind), ",wide"), {3, 128}, 40.0);
    wide.finite_differences = smooth_at_zero(kind);
    cases.push_back(wide);
  }
  return cases;
}

// y = f(x[:, 0]) * x[:, 1] for x [tokens, 2, ffn], f as above.
std::vector<OpCase> gated_cases() {
  std::vector<OpCase> cases;
  for (const Activation kind : kActivations) {
    for (const Shape& shape : {Shape{1, 2, 1}, Shape{3, 2, 7}, Shape{5, 2, 128}, Shape{17, 514}}) {
      cases.push_back({.name = concat(bloomery::name(kind), ",tokens=", shape[0],
                                      ",ffn=", shape.numel() / shape[0] / 2),
                       .inputs = {{.name = "x", .shape = shape}},
                       .forward = [kind](Context& context, Inputs& in) -> Outputs {
                         return {{"y", gated_activation(context, in.value("x"), kind)}};
                       },
                       .attributes = {{"activation", bloomery::name(kind)}},
                       .finite_differences = smooth_at_zero(kind) || shape.numel() < 100});
    }
  }
  return cases;
}

const bool kRegistered = register_op_tests("activation", activation_cases()) &&
                         register_op_tests("gated_activation", gated_cases());

TEST(Activation, RejectsWidthsWithoutTwoHalves) {
  Device device({.num_threads = 1});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value odd = context.output(DType::fp32, {4, 7});
  EXPECT_THROW(gated_activation(context, odd, Activation::silu), Error);
  const Value three = context.output(DType::fp32, {4, 3, 8});
  EXPECT_THROW(gated_activation(context, three, Activation::silu), Error);
}

TEST(Activation, HandlesNoTokens) {
  Device device({.num_threads = 1});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  const Batch batch;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value none = context.output(DType::fp32, {0, 2, 8});
  EXPECT_EQ(gated_activation(context, none, Activation::silu).shape(), (Shape{0, 8}));
  EXPECT_EQ(activation(context, none, Activation::silu).shape(), none.shape());
}

// The largest errors of what is computed for 16-bit results, in units of 2^-16: of y relative to
// y, of dy/dx relative to 1.
template <Activation kActivation>
std::array<double, 2> brief_errors() {
  std::array<double, 2> worst{};
  for (int i = -80000; i <= 80000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    const double y = activate<kActivation>(double{x});
    const double slope = activation_derivative<kActivation>(double{x});
    const double brief = activate<kActivation, Accuracy::brief>(x);
    const double brief_slope = activation_derivative<kActivation, Accuracy::brief>(x);
    worst[0] = std::max(worst[0], 65536 * std::abs(brief - y) / std::max(std::abs(y), 1e-30));
    worst[1] = std::max(worst[1], 65536 * std::abs(brief_slope - slope));
  }
  return worst;
}

TEST(Activation, ForSixteenBitsIsExactEnough) {
  for (const auto& errors :
       {brief_errors<Activation::gelu_tanh>(), brief_errors<Activation::silu>()}) {
    EXPECT_LT(errors[0], 1.0);
    EXPECT_LT(errors[1], 1.0);
  }
}

TEST(Activation, ForSixteenBitsTakesExtremeNumbers) {
  constexpr auto gelu = activate<Activation::gelu_tanh, Accuracy::brief, float>;
  constexpr auto slope = activation_derivative<Activation::gelu_tanh, Accuracy::brief, float>;
  EXPECT_EQ(bfloat16(gelu(3e38f)).bits, bfloat16(3e38f).bits);
  EXPECT_EQ(gelu(-3e38f), 0.0f);
  EXPECT_EQ(gelu(INFINITY), INFINITY);
  EXPECT_EQ(bfloat16(slope(1e10f)).bits, bfloat16(1.0f).bits);
  EXPECT_EQ(slope(-1e10f), 0.0f);
  EXPECT_TRUE(std::isnan(gelu(NAN)));
  EXPECT_TRUE(std::isnan(slope(NAN)));
}

}  // namespace
}  // namespace bloomery::testing
