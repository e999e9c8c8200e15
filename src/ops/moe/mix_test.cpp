#include "ops/moe/mix.h"

#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

OpCase mix_case(MixKind kind, std::int64_t tokens, std::int64_t columns) {
  const bool softmax = kind == MixKind::softmax;
  OpCase result;
  result.name = concat(softmax ? "softmax" : "logistic", ",columns=", columns);
  result.inputs = {{.name = "a", .shape = {tokens, columns}},
                   {.name = "b", .shape = {tokens, columns}},
                   {.name = "logits", .shape = {tokens, softmax ? 2 : 1}}};
  result.forward = [kind](Context& context, Inputs& in) -> Outputs {
    return {{"y", mix(context, in.value("a"), in.value("b"), in.value("logits"), kind)}};
  };
  result.tolerance = {{DType::fp32, 1e-6}, {DType::bf16, 4e-3}, {DType::fp16, 5e-4}};
  return result;
}

const bool kRegistered = register_op_tests(
    "mix", {mix_case(MixKind::softmax, 9, 33), mix_case(MixKind::softmax, 3, 128),
            mix_case(MixKind::logistic, 9, 33), mix_case(MixKind::logistic, 40, 16)});

}  // namespace
}  // namespace bloomery::testing
