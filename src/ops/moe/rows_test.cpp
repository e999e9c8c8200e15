// Everything between the gates and the output of a mixture, as one op: permute, the experts' two
// layers, combine. Routing is given.
#include "ops/moe/rows.h"

#include "harness/op_harness.h"
#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/moe/grouped_linear.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::string name;
  std::int64_t tokens, topk, experts, hidden, ffn;
  Activation activation = Activation::gelu_tanh;
  bool gated = false, bias = true;
  std::int64_t used = 0;        // experts that tokens go to; 0: all
  std::int64_t every_drop = 0;  // every so many-th choice is dropped; 0: none
};

std::vector<std::int64_t> routes(const Sizes& s) {
  std::vector<std::int64_t> experts;
  const std::int64_t used = s.used > 0 ? s.used : s.experts;
  for (std::int64_t pair = 0; pair < s.tokens * s.topk; ++pair) {
    const std::int64_t t = pair / s.topk, j = pair % s.topk;
    const bool dropped = s.every_drop > 0 && pair % s.every_drop == 0;
    experts.push_back(dropped ? -1 : (t * t * 7 + t / 3 + j) % used);
  }
  return experts;
}

OpCase expert_case(const Sizes& s) {
  OpCase result;
  result.name = s.name;
  const Shape up =
      s.gated ? Shape{s.experts, 2, s.ffn, s.hidden} : Shape{s.experts, s.ffn, s.hidden};
  const Shape up_bias = s.gated ? Shape{s.experts, 2, s.ffn} : Shape{s.experts, s.ffn};
  result.inputs = {
      {.name = "x", .shape = {s.tokens, s.hidden}},
      {.name = "gates", .shape = {s.tokens, s.topk}},
      {.name = "experts", .role = Role::int32, .shape = {s.tokens, s.topk}, .integers = routes(s)},
      {.name = "up", .role = Role::parameter, .shape = up, .deviation = 0.3},
      {.name = "down", .role = Role::parameter, .shape = {s.experts, s.hidden, s.ffn}}};
  if (s.bias) {
    result.inputs.push_back({.name = "up_bias", .role = Role::parameter, .shape = up_bias});
    result.inputs.push_back(
        {.name = "down_bias", .role = Role::parameter, .shape = {s.experts, s.hidden}});
  }
  result.forward = [s](Context& context, Inputs& in) -> Outputs {
    const Dispatch dispatch = sort_by_expert(context.stream, in.tensor("experts"), s.experts);
    const Value gates = cast(context, in.value("gates"), accumulation_dtype(in.dtype));
    const auto bias = [&](const char* name) { return s.bias ? &in.parameter(name) : nullptr; };
    Value rows = permute(context, in.value("x"), dispatch);
    rows = grouped_linear(context, rows, in.parameter("up"), bias("up_bias"), dispatch.groups,
                          {.activation = s.gated ? Activation::none : s.activation});
    if (s.gated) {
      rows = gated_activation(context, rows, s.activation);
    }
    rows = grouped_linear(context, rows, in.parameter("down"), bias("down_bias"), dispatch.groups);
    return {{"y", combine(context, rows, gates, dispatch)}};
  };
  result.finite_differences = s.tokens < 100;
  result.tolerance = {{DType::fp32, 1e-6}, {DType::bf16, 8e-3}, {DType::fp16, 1e-3}};
  return result;
}

const bool kRegistered = register_op_tests(
    "experts",
    {expert_case({.name = "small", .tokens = 13, .topk = 2, .experts = 4, .hidden = 7, .ffn = 11}),
     expert_case({.name = "gated",
                  .tokens = 29,
                  .topk = 3,
                  .experts = 5,
                  .hidden = 16,
                  .ffn = 24,
                  .activation = Activation::silu,
                  .gated = true,
                  .bias = false}),
     expert_case({.name = "dropped, and experts without tokens",
                  .tokens = 40,
                  .topk = 2,
                  .experts = 8,
                  .hidden = 8,
                  .ffn = 16,
                  .used = 5,
                  .every_drop = 3}),
     expert_case({.name = "all dropped",
                  .tokens = 5,
                  .topk = 1,
                  .experts = 3,
                  .hidden = 8,
                  .ffn = 8,
                  .every_drop = 1}),
     expert_case({.name = "large",
                  .tokens = 700,
                  .topk = 2,
                  .experts = 3,
                  .hidden = 200,
                  .ffn = 328,
                  .every_drop = 11})});

}  // namespace
}  // namespace bloomery::testing
