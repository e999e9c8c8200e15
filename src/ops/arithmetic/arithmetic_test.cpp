#include "ops/arithmetic/arithmetic.h"

#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

std::vector<OpCase> add_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t count : {1, 7, 64, 1021, 40960}) {
    cases.push_back({.name = concat("count=", count),
                     .inputs = {{.name = "a", .shape = {count}}, {.name = "b", .shape = {count}}},
                     .forward = [](Context& context, Inputs& in) -> Outputs {
                       return {{"y", add(context, in.value("a"), in.value("b"))}};
                     }});
  }
  return cases;
}

std::vector<OpCase> scale_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t count : {1, 13, 4096}) {
    cases.push_back({.name = concat("count=", count),
                     .inputs = {{.name = "x", .shape = {count}}},
                     .forward = [](Context& context, Inputs& in) -> Outputs {
                       return {{"y", scale(context, in.value("x"), -0.375f)}};
                     },
                     .attributes = {{"factor", "-0.375"}}});
  }
  return cases;
}

const bool kRegistered =
    register_op_tests("add", add_cases()) && register_op_tests("scale", scale_cases());

}  // namespace
}  // namespace bloomery::testing
