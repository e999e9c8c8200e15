#include "nn/mlp.h"

#include <gtest/gtest.h>

#include <numbers>

#include "nn/layer_case.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kTokens = 7, kHidden = 6, kFfn = 10;

double activated(MlpKind kind, double x) {
  const double erf = x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
  const double tanh =
      x * 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  switch (kind) {
    case MlpKind::gelu_tanh:
    case MlpKind::geglu_tanh:
      return tanh;
    case MlpKind::silu:
    case MlpKind::swiglu:
      return x / (1 + std::exp(-x));
    case MlpKind::relu:
    case MlpKind::reglu:
      return std::max(x, 0.0);
    case MlpKind::squared_relu:
      return std::max(x, 0.0) * std::max(x, 0.0);
    default:
      return erf;
  }
}

Numbers formula(const NamedNumbers& in, const MlpOptions& options) {
  const auto bias = [&](const char* name) { return *options.bias ? &in.at(name) : nullptr; };
  const Numbers up = plain_linear(in.at("x"), in.at("mlp.up.weight"), bias("mlp.up.bias"), kHidden);
  Numbers inside;
  const std::size_t width = up.size() / kTokens;
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t i = 0; i < kFfn; ++i) {
      const double first = activated(options.kind, up[token * width + i]);
      inside.push_back(options.gated() ? first * up[token * width + kFfn + i] : first);
    }
  }
  return plain_linear(inside, in.at("mlp.down.weight"), bias("mlp.down.bias"), kFfn);
}

TEST(Mlp, IsTwoProductsWithAnActivationBetween) {
  for (const MlpKind kind :
       {MlpKind::gelu_tanh, MlpKind::gelu_erf, MlpKind::silu, MlpKind::relu, MlpKind::squared_relu,
        MlpKind::swiglu, MlpKind::geglu_tanh, MlpKind::geglu_erf, MlpKind::reglu}) {
    for (const bool bias : {false, true}) {
      for (const bool remakes : {false, true}) {
        SCOPED_TRACE(concat(static_cast<int>(kind), bias, remakes));
        ModelOptions options;
        options.hidden_size = kHidden;
        options.num_layers = 1;
        options.mlp = {.ffn = kFfn, .kind = kind, .bias = bias};
        LayerCase layer;
        layer.batch = {.num_sequences = 1, .length = kTokens};
        layer.features.activations.remake_cheap_values = remakes;
        const Mlp mlp("mlp", options, layer.mesh);
        ParameterList parameters;
        mlp.collect(parameters);
        EXPECT_EQ(parameters.size(), bias ? 4u : 2u);
        layer.expect(
            {{"x", {kTokens, kHidden}}}, parameters,
            [&](Context& context, const std::map<std::string, Value>& in) {
              return std::vector{mlp(context, in.at("x"))};
            },
            [&](const NamedNumbers& in) { return formula(in, options.mlp); });
      }
    }
  }
}

}  // namespace
}  // namespace bloomery::testing
