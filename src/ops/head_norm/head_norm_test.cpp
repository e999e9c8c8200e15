#include "ops/head_norm/head_norm.h"

#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

// qkv [tokens, groups, per_group + 2, dim]: RMS norm over the channels of each query head (times
// query_gain) and of each key head (times key_gain); value heads pass.
OpCase make_case(const std::string& name, std::int64_t tokens, const HeadNormOptions& options) {
  OpCase op_case;
  op_case.name = name;
  op_case.inputs = {
      {.name = "qkv",
       .shape = {tokens, options.num_groups, options.heads_per_group + 2, options.head_dim}},
      {.name = "query_gain", .role = Role::parameter, .shape = {options.head_dim}, .mean = 1},
      {.name = "key_gain", .role = Role::parameter, .shape = {options.head_dim}, .mean = 1}};
  op_case.forward = [options](Context& context, Inputs& in) -> Outputs {
    return {{"y", head_norm(context, in.value("qkv"), in.parameter("query_gain"),
                            in.parameter("key_gain"), options)}};
  };
  op_case.attributes = {{"epsilon", concat(options.epsilon)},
                        {"one_plus_gain", options.one_plus_gain ? "1" : "0"}};
  return op_case;
}

const bool kRegistered = register_op_tests(
    "head_norm",
    {make_case("one_token", 1, {1, 1, 8}), make_case("one_channel", 5, {2, 1, 1}),
     make_case("grouped", 70, {2, 3, 64, 1e-5f}), make_case("odd", 33, {3, 2, 33, 1e-3f}),
     make_case("wide", 40, {1, 4, 256}), make_case("one_plus_gain", 65, {2, 2, 40, 1e-6f, true})});

}  // namespace
}  // namespace bloomery::testing
