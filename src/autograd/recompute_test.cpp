// What recompute promises beyond the same gradients (autograd_test.cpp compares those).
#include <gtest/gtest.h>

#include "autograd/tape_case.h"

namespace bloomery::testing {
namespace {

class RecomputeTest : public ::testing::Test, protected TapeCase {};

// A block that leaves the stream alone and makes a pending branch, while the stream is also used
// afterwards: the segment must not replace the gradient that the later use wrote.
TEST_F(RecomputeTest, AddsToTheGradientOfAValueItPassesThrough) {
  std::vector<std::vector<float>> grads;
  for (const bool recomputed : {false, true}) {
    Parameter w = parameter("w"), v = parameter("v");
    Tape tape(stream);
    Context ctx = context(&tape);
    const Segment branch = [&](Context& inner, State s) {
      s.pending = times(inner, s.stream, w);
      return s;
    };
    const Value x = ctx.wrap(drawn("x"));
    const State s = recomputed ? recompute(ctx, {x}, branch) : branch(ctx, {x});
    EXPECT_EQ(s.stream.slot, x.slot);
    const Value y = sum(ctx, times(ctx, x, v), sum(ctx, s.stream, s.pending));
    tape.set_grad(y.slot, drawn("dy"));
    tape.backward();
    grads.push_back(host(tape.grad(x.slot)));
  }
  EXPECT_EQ(grads[0], grads[1]);
}

TEST_F(RecomputeTest, WantsASettledStateAndWithoutATapeOnlyRuns) {
  Parameter w = parameter("w");
  const Segment segment = [&](Context& inner, const State& s) {
    return State{times(inner, s.stream, w)};
  };
  Tape tape(stream);
  Context with = context(&tape), without = context(nullptr);
  const Value x = with.wrap(drawn("x"));
  EXPECT_THROW(recompute(with, {x, x}, segment), Error);
  EXPECT_EQ(recompute(without, {x}, segment).stream.slot, nullptr);
  EXPECT_EQ(tape.num_entries(), 0u);
}

TEST_F(RecomputeTest, SaysSoInTheContext) {
  std::vector<bool> seen;
  const Segment segment = [&](Context& inner, const State& s) {
    seen.push_back(inner.recomputing);
    return State{tanh(inner, s.stream)};
  };
  Tape tape(stream);
  Context ctx = context(&tape);
  const State s = recompute(ctx, {ctx.wrap(drawn("x"))}, segment);
  tape.set_grad(s.stream.slot, filled(1));
  tape.backward();
  EXPECT_EQ(seen, (std::vector<bool>{false, true}));
}

TEST_F(RecomputeTest, LowersThePeak) {
  std::size_t peaks[2];
  for (const bool recomputed : {false, true}) {
    std::vector<Parameter> weights;
    for (int i = 0; i < 32; ++i) {
      weights.push_back(parameter(concat("w", i)));
    }
    Tape tape(stream);
    Context ctx = context(&tape);
    stream.memory()->reset_peak();
    const std::size_t before = used();
    State s{ctx.wrap(drawn("x"))};
    for (int block = 0; block < 8; ++block) {
      const Segment segment = [&weights, block](Context& inner, State state) {
        for (int i = 0; i < 4; ++i) {
          state.stream = tanh(inner, times(inner, state.stream, weights[block * 4 + i]));
        }
        return state;
      };
      s = recomputed ? recompute(ctx, s, segment) : segment(ctx, s);
    }
    tape.set_grad(s.stream.slot, filled(1));
    s = {};
    tape.backward();
    peaks[recomputed] = stream.memory()->statistics().peak_used_bytes - before;
  }
  EXPECT_LT(peaks[1] * 2, peaks[0]);
}

}  // namespace
}  // namespace bloomery::testing
