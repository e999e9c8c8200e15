#include "ops/pooling/pooling.h"

#include <gtest/gtest.h>

#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

// y[b] = x[b length - first], or zeros where that is no row of x.
std::vector<OpCase> first_token_cases() {
  struct Sizes {
    std::int64_t sequences, length, columns, first, count;
  };
  std::vector<OpCase> cases;
  for (const Sizes& s : {Sizes{1, 1, 3, 0, 1},
                         {3, 5, 8, 0, 15},
                         {4, 6, 33, 6, 12},
                         {4, 6, 129, 7, 5},
                         {2, 8, 16, 12, 4}}) {
    OpCase each{.name = concat("sequences=", s.sequences, ",length=", s.length, ",first=", s.first,
                               ",count=", s.count),
                .inputs = {{.name = "x", .shape = {s.count, s.columns}}}};
    each.batch = [s](Batch& batch, Inputs&) {
      batch.num_sequences = s.sequences;
      batch.length = s.length;
    };
    each.forward = [s](Context& context, Inputs& in) -> Outputs {
      return {{"y", first_tokens(context, in.value("x"), {s.first, s.count})}};
    };
    each.attributes = {{"sequences", concat(s.sequences)},
                       {"length", concat(s.length)},
                       {"first", concat(s.first)}};
    cases.push_back(each);
  }
  return cases;
}

std::vector<OpCase> tanh_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t count : {1, 13, 768, 9001}) {
    // One value near 1 alone would compare two roundings of a 1 - y^2 that has few digits left.
    const double deviation = count == 1 ? 0.25 : 2;
    cases.push_back({.name = concat("count=", count),
                     .inputs = {{.name = "x", .shape = {count}, .deviation = deviation}},
                     .forward = [](Context& context, Inputs& in) -> Outputs {
                       return {{"y", tanh(context, in.value("x"))}};
                     }});
  }
  return cases;
}

const bool kRegistered = register_op_tests("first_tokens", first_token_cases()) &&
                         register_op_tests("tanh", tanh_cases());

TEST(FirstTokens, AreRowsOfTheirSequences) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device);
  Mesh mesh = Mesh::single();
  Batch batch;
  batch.num_sequences = 3;
  batch.length = 2;
  Context context{.stream = stream, .mesh = mesh, .batch = batch};
  const Value x{Tensor::from_host<float>(stream, {0, 1, 2, 3, 4, 5}, {6, 1}), nullptr};
  EXPECT_EQ(first_tokens(context, x).data.to_host<float>(stream), (std::vector<float>{0, 2, 4}));
  const Value part{x.data.slice(1, 4), nullptr};
  EXPECT_EQ(first_tokens(context, part, {1, 3}).data.to_host<float>(stream),
            (std::vector<float>{0, 2, 0}));
  EXPECT_THROW(first_tokens(context, part), Error);
}

}  // namespace
}  // namespace bloomery::testing
