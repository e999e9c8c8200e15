#include "nn/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nn/layer_case.h"

namespace bloomery::testing {
namespace {

constexpr std::size_t kTokens = 9, kHidden = 5, kFfn = 4, kExperts = 4, kShared = 6;

struct Case {
  const char* name;
  std::int64_t topk = 1;
  bool renormalise = false, gated = false, bias = true;
  MoeKind kind = MoeKind::standard;
  std::int64_t shared_ffn = 0;
};

ModelOptions options_of(const Case& c) {
  ModelOptions o;
  o.num_layers = 1;
  o.hidden_size = kHidden;
  o.mlp = {.ffn = kFfn, .kind = c.gated ? MlpKind::swiglu : MlpKind::silu, .bias = c.bias};
  o.moe.num_experts = {kExperts};
  o.moe.interval = 1;
  o.moe.ffn = kFfn;
  o.moe.shared_ffn = c.shared_ffn;
  o.moe.kind = c.kind;
  o.moe.topk = c.topk;
  o.moe.renormalise = c.renormalise;
  o.moe.balance_all_choices = false;
  o.moe.drop_tokens = o.moe.sample_second = false;
  o.moe.loss_coefficient = 0;  // it would add a gradient of its own
  return o;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// One row through an MLP of `ffn` channels; `up` and `down` without biases where those are null.
Numbers through(const Case& c, const Numbers& x, std::size_t ffn, const Numbers& up,
                const Numbers* up_bias, const Numbers& down, const Numbers* down_bias) {
  const Numbers wide = plain_linear(x, up, up_bias, kHidden);
  Numbers inside;
  for (std::size_t i = 0; i < ffn; ++i) {
    inside.push_back(silu(wide[i]) * (c.gated ? wide[ffn + i] : 1));
  }
  return plain_linear(inside, down, down_bias, ffn);
}

// The part of a tensor with something for each expert.
Numbers of_expert(const Numbers& all, std::size_t expert) {
  const auto size = static_cast<std::ptrdiff_t>(all.size() / kExperts);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(expert) * size;
  return {first, first + size};
}

Numbers expert_output(const Case& c, const NamedNumbers& in, const Numbers& x, std::size_t expert) {
  const Numbers up_bias = c.bias ? of_expert(in.at("moe.experts.up.bias"), expert) : Numbers();
  const Numbers down_bias = c.bias ? of_expert(in.at("moe.experts.down.bias"), expert) : Numbers();
  return through(c, x, kFfn, of_expert(in.at("moe.experts.up.weight"), expert),
                 c.bias ? &up_bias : nullptr, of_expert(in.at("moe.experts.down.weight"), expert),
                 c.bias ? &down_bias : nullptr);
}

// What stands beside the experts, weighed with them.
void add_branch(const Case& c, const NamedNumbers& in, const Numbers& x, Numbers& y) {
  const std::string name = c.shared_ffn > 0 ? "moe.shared" : "moe.residual";
  const auto bias = [&](const std::string& of) { return c.bias ? &in.at(name + of) : nullptr; };
  const Numbers branch =
      through(c, x, c.shared_ffn > 0 ? kShared : kFfn, in.at(name + ".up.weight"), bias(".up.bias"),
              in.at(name + ".down.weight"), bias(".down.bias"));
  Numbers weights{1, 0};
  if (c.shared_ffn > 0) {
    const double logit = plain_linear(x, in.at("moe.shared_gate.weight"), nullptr, kHidden).front();
    weights[1] = 1 / (1 + std::exp(-logit));
  } else {
    weights =
        plain_linear(x, in.at("moe.coefficient.weight"), &in.at("moe.coefficient.bias"), kHidden);
    plain_softmax(weights);
  }
  for (std::size_t i = 0; i < kHidden; ++i) {
    y[i] = weights[0] * y[i] + weights[1] * branch[i];
  }
}

Numbers formula(const Case& c, const NamedNumbers& in) {
  Numbers all;
  for (std::size_t token = 0; token < kTokens; ++token) {
    const auto first = in.at("x").begin() + static_cast<std::ptrdiff_t>(token * kHidden);
    const Numbers x(first, first + kHidden);
    Numbers gates = plain_linear(x, in.at("moe.router.weight"), nullptr, kHidden);
    plain_softmax(gates);
    Numbers sorted = gates;
    std::ranges::sort(sorted, std::greater());
    const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(c.topk);
    const double sum = c.renormalise ? std::accumulate(sorted.begin(), last, 0.0) : 1;
    Numbers y(kHidden);
    for (std::size_t expert = 0; expert < kExperts; ++expert) {
      if (gates[expert] < *(last - 1)) continue;
      const Numbers part = expert_output(c, in, x, expert);
      for (std::size_t i = 0; i < kHidden; ++i) y[i] += gates[expert] / sum * part[i];
    }
    if (c.shared_ffn > 0 || c.kind == MoeKind::residual) add_branch(c, in, x, y);
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

TEST(Moe, WeighsTheExpertsThatEachTokenChose) {
  for (const Case& c :
       {Case{.name = "one"}, Case{.name = "two", .topk = 2, .renormalise = true},
        Case{.name = "three, gated", .topk = 3, .gated = true, .bias = false},
        Case{.name = "residual", .kind = MoeKind::residual},
        Case{.name = "shared", .topk = 2, .gated = true, .bias = false, .shared_ffn = kShared}}) {
    SCOPED_TRACE(c.name);
    LayerCase layer;
    layer.batch = {.num_sequences = 1, .length = kTokens};
    const Moe moe("moe", 0, options_of(c), layer.mesh);
    ParameterList parameters;
    moe.collect(parameters);
    layer.expect(
        {{"x", {kTokens, kHidden}}}, parameters,
        [&](Context& context, const std::map<std::string, Value>& in) {
          return std::vector{moe(context, in.at("x"))};
        },
        [&](const NamedNumbers& in) { return formula(c, in); });
  }
}

TEST(FeedForward, IsAMixtureInSomeLayers) {
  ModelOptions options = options_of({});
  options.num_layers = 4;
  options.moe.interval = 2;
  options.moe.dense_layers = {3};
  const Mesh mesh = Mesh::single();
  for (int number = 0; number < 4; ++number) {
    const FeedForward layer(concat("blocks.", number), number, options, mesh);
    ParameterList parameters;
    layer.collect(parameters);
    const char* const kind = number == 1 ? ".moe.router" : ".mlp.up";
    EXPECT_TRUE(parameters.front()->name.starts_with(concat("blocks.", number, kind)))
        << parameters.front()->name;
  }
}

}  // namespace
}  // namespace bloomery::testing
