#include "ops/low_rank/low_rank.h"

#include "harness/op_harness.h"
#include "ops/linear/linear.h"

namespace bloomery::testing {
namespace {

struct Sizes {
  std::int64_t tokens, in, rank;
  Shape out;
};

// y = x w^T + scale (x a^T) b^T, where each row of w has the columns of its part's product.
OpCase make_case(const std::string& name, const Sizes& s, const RowParts& parts) {
  OpCase op_case;
  op_case.name = name;
  Shape weight = s.out, second = s.out;
  weight.append(s.in);
  second.append(s.rank);
  op_case.inputs = {
      {.name = "x", .shape = {s.tokens, s.in}},
      {.name = "w", .role = Role::parameter, .shape = weight},
      {.name = "a", .role = Role::parameter, .shape = {parts.num_places, s.rank, s.in}},
      {.name = "b", .role = Role::parameter, .shape = second}};
  op_case.forward = [parts](Context& context, Inputs& in) -> Outputs {
    const Value y = linear(context, in.value("x"), in.parameter("w"), nullptr);
    const Value h = linear(context, in.value("x"), in.parameter("a"), nullptr);
    low_rank_add(context, y, h, in.parameter("b"), parts, 0.75f);
    return {{"y", y}};
  };
  return op_case;
}

// Queries and values of two groups of 3 heads with one key and one value each.
constexpr RowParts kQueriesAndValues{
    .slots = 5, .inner = 4, .count = 3, .ends = {3, 4, 5}, .places = {0, -1, 1}, .num_places = 2};
constexpr RowParts kGateAndUp{
    .slots = 2, .inner = 33, .count = 2, .ends = {1, 2}, .places = {0, 1}, .num_places = 2};
constexpr RowParts kUpAlone{
    .slots = 2, .inner = 33, .count = 2, .ends = {1, 2}, .places = {-1, 0}, .num_places = 1};

const bool kRegistered = register_op_tests(
    "low_rank_add",
    {make_case("whole", {70, 24, 4, {40}}, {}), make_case("one", {1, 8, 1, {1}}, {}),
     make_case("queries_and_values", {33, 16, 3, {2, 5, 4}}, kQueriesAndValues),
     make_case("gate_and_up", {17, 20, 8, {2, 33}}, kGateAndUp),
     make_case("up_alone", {17, 20, 8, {2, 33}}, kUpAlone)});

}  // namespace
}  // namespace bloomery::testing
