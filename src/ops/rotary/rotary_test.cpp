#include "ops/rotary/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iomanip>
#include <sstream>

#include "comm/mesh.h"
#include "harness/op_harness.h"

namespace bloomery::testing {
namespace {

// x [tokens, groups, heads, head_dim], of whose heads the first `turned` of each group turn (all
// but the last, the value, for rotary; all for rotary_heads). With angle = positions[token] *
// frequencies[i], pair i = (x[i], x[i + dim/2]), or (x[2i], x[2i+1]) when
// interleaved, becomes
//   (a cos - b sin, b cos + a sin);  channels from dim on stay.
struct Problem {
  std::string name;
  std::int64_t tokens = 1;
  RotaryOptions options;
  std::vector<std::int64_t> positions;  // else drawn from [0, 2048)
};

OpCase make_case(const Problem& p, bool fused) {
  OpCase op_case;
  op_case.name = p.name;
  const RotaryOptions& o = p.options;
  const std::int64_t heads = o.heads_per_group + (fused ? 2 : 0);
  op_case.inputs = {{.name = "x", .shape = {p.tokens, o.num_groups, heads, o.head_dim}},
                    {.name = "positions",
                     .role = Role::int32,
                     .shape = {p.tokens},
                     .limit = 2048,
                     .integers = p.positions}};
  op_case.forward = [=](Context& context, Inputs& in) -> Outputs {
    const Value& x = in.value("x");
    return {{"y", fused ? rotary(context, x, o) : rotary_heads(context, x, o)}};
  };
  const std::int64_t dim = o.dim == 0 ? o.head_dim : o.dim;
  const RotaryTable table = make_rotary_table(o.base, dim, o.scaling, p.tokens);
  std::ostringstream frequencies;
  frequencies.precision(17);
  for (std::int64_t i = 0; i < table.num_pairs; ++i) {
    frequencies << table.frequencies[static_cast<std::size_t>(i)] << ' ';
  }
  op_case.attributes = {{"frequencies", frequencies.str()},
                        {"magnitude", concat(std::setprecision(17), table.magnitude)},
                        {"turned", concat(fused ? heads - 1 : heads)},
                        {"interleaved", o.interleaved ? "true" : "false"}};
  op_case.batch = [p](Batch& batch, Inputs& in) {
    batch.num_sequences = 1;
    batch.length = p.tokens;
    batch.positions = in.tensor("positions");
  };
  return op_case;
}

std::vector<OpCase> cases(bool fused) {
  const std::vector<Problem> problems = {
      {"one_token", 1, {.head_dim = 2}, {5}},
      {"halves", 7, {.num_groups = 2, .heads_per_group = 3, .head_dim = 64}, {}},
      {"interleaved",
       7,
       {.num_groups = 2, .heads_per_group = 3, .head_dim = 64, .interleaved = true},
       {}},
      {"partial", 5, {.num_groups = 3, .heads_per_group = 1, .head_dim = 80, .dim = 20}, {}},
      {"partial_interleaved",
       5,
       {.num_groups = 1, .heads_per_group = 2, .head_dim = 33, .dim = 32, .interleaved = true},
       {}},
      {"odd", 3, {.num_groups = 1, .heads_per_group = 5, .head_dim = 6}, {}},
      {"large_base", 4, {.heads_per_group = 2, .head_dim = 128, .base = 500000}, {}},
      {"far_positions",
       5,
       {.heads_per_group = 2, .head_dim = 16},
       {0, 99999, 131071, 1048575, 16777217}},
      {"interpolated",
       4,
       {.heads_per_group = 2,
        .head_dim = 16,
        .scaling = {.kind = RotaryScaling::Kind::linear, .factor = 4}},
       {0, 3, 4, 8191}},
      {"yarn",
       6,
       {.heads_per_group = 2,
        .head_dim = 40,
        .dim = 32,
        .scaling = {.kind = RotaryScaling::Kind::yarn, .factor = 4, .original_length = 64}},
       {}},
      {"many_tokens", 600, {.num_groups = 2, .heads_per_group = 2, .head_dim = 64}, {}}};
  std::vector<OpCase> all;
  for (const Problem& p : problems) {
    all.push_back(make_case(p, fused));
  }
  return all;
}

const bool kRegistered =
    register_op_tests("rotary", cases(true)) && register_op_tests("rotary_heads", cases(false));

struct Fixture {
  explicit Fixture(const std::vector<std::int32_t>& positions)
      : device({.num_threads = 2, .poison = true}),
        stream(device),
        mesh(Mesh::single()),
        tape(stream) {
    batch.num_sequences = 1;
    batch.length = static_cast<std::int64_t>(positions.size());
    batch.positions = Tensor::from_host(stream, positions, {batch.length});
  }
  Context context() {
    return {.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape, .training = true};
  }

  Device device;
  Stream stream;
  Mesh mesh;
  Tape tape;
  Batch batch;
};

TEST(Rotary, TurnsByThePosition) {
  Fixture f({0, 1, 3});
  Context context = f.context();
  // One query head, one key head, one value head of dimension 2: frequency 1.
  const std::vector<double> x = {1, 0, 0, 1, 5, 7, 1, 0, 0, 1, 5, 7, 1, 0, 0, 1, 5, 7};
  const Value qkv = f.tape.value(Tensor::from_host(f.stream, x, {3, 6}));
  const Value y = rotary(context, qkv, {.head_dim = 2});
  const std::vector<double> turned = y.data.to_host<double>(f.stream);
  for (int token = 0; token < 3; ++token) {
    const double angle = token == 2 ? 3 : token;
    const double expected[] = {
        std::cos(angle), std::sin(angle), -std::sin(angle), std::cos(angle), 5, 7};
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(turned[token * 6 + i], expected[i], 1e-15) << token << " " << i;
    }
  }
  EXPECT_EQ(y.data.data(), qkv.data.data());
}

// Products of queries and keys depend on the distance of their positions alone.
TEST(Rotary, ScoresDependOnDistances) {
  Fixture f({100, 93, 100007, 100000});
  Context context = f.context();
  std::vector<double> x;
  for (int token = 0; token < 4; ++token) {
    for (int c = 0; c < 32; ++c) {
      x.push_back(random_normal(5, c));
    }
  }
  const Value heads = f.tape.value(Tensor::from_host(f.stream, x, {4, 32}));
  const std::vector<double> y =
      rotary_heads(context, heads, {.head_dim = 32}).data.to_host<double>(f.stream);
  double near = 0, far = 0;
  for (int c = 0; c < 32; ++c) {
    near += y[c] * y[32 + c];
    far += y[64 + c] * y[96 + c];
  }
  EXPECT_NEAR(near, far, 1e-9);
}

// Yarn's M is a factor of what turns, forward and backward, and of nothing else.
TEST(Rotary, MagnitudeMultipliesWhatTurns) {
  const RotaryOptions plain{.head_dim = 6, .dim = 4};
  RotaryOptions sharpened = plain;
  sharpened.scaling = {.kind = RotaryScaling::Kind::yarn,
                       .factor = 1,  // the frequencies stay
                       .original_length = 4096,
                       .attention_factor = 1.25};
  std::vector<double> x;
  for (int i = 0; i < 2 * 18; ++i) {
    x.push_back(random_normal(5, i));
  }
  std::vector<double> y[2], grad[2];
  for (const bool scaled : {false, true}) {
    Fixture f({3, 700});
    Context context = f.context();
    const Value in = f.tape.value(Tensor::from_host(f.stream, x, {2, 18}));
    const Value out = rotary(context, in, scaled ? sharpened : plain);
    y[scaled] = out.data.to_host<double>(f.stream);
    f.tape.set_grad(out.slot, Tensor::from_host(f.stream, x, {2, 18}));
    f.tape.backward();
    grad[scaled] = in.slot->grad.to_host<double>(f.stream);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool turns = i % 18 < 12 && i % 6 < 4;  // query and key, not value; dim of head_dim
    EXPECT_NEAR(y[1][i], y[0][i] * (turns ? 1.25 : 1), 1e-15) << i;
    EXPECT_NEAR(grad[1][i], grad[0][i] * (turns ? 1.25 : 1), 1e-15) << i;
  }
}

TEST(Rotary, HandsItsGradientBufferOn) {
  Fixture f({4, 2});
  Context context = f.context();
  const Value x = f.tape.value(Tensor::from_host(f.stream, std::vector<double>(12, 1), {2, 6}));
  const Value y = rotary(context, x, {.head_dim = 2});
  const Tensor grad = Tensor::from_host(f.stream, std::vector<double>(12, 1), {2, 6});
  f.tape.set_grad(y.slot, grad);
  f.tape.backward();
  EXPECT_EQ(x.slot->grad.data(), grad.data());
}

TEST(Rotary, WorksWithoutTapeAndWithoutTokens) {
  Fixture f({});
  Context context = f.context();
  context.tape = nullptr;
  const Value x{Tensor::empty(f.stream, DType::fp32, {0, 6}), nullptr};
  EXPECT_EQ(rotary(context, x, {.head_dim = 2}).slot, nullptr);
}

TEST(Rotary, NamesMistakes) {
  Fixture f({1, 2});
  Context context = f.context();
  const Value x = f.tape.value(Tensor::zeros(f.stream, DType::fp32, {2, 12}));
  EXPECT_THROW(rotary(context, x, {.head_dim = 3}), Error);            // odd
  EXPECT_THROW(rotary(context, x, {.head_dim = 4, .dim = 6}), Error);  // larger than the head
  EXPECT_THROW(rotary(context, x, {.head_dim = 2}), Error);            // wrong width
  EXPECT_THROW(rotary(context, x, {.head_dim = 4, .base = 0}), Error);
  f.batch.positions = Tensor();
  EXPECT_THROW(rotary(context, x, {.head_dim = 4}), Error);
}

}  // namespace
}  // namespace bloomery::testing
