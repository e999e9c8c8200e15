// The rules at the head of tape.h, with ops so small that they can be seen whole. That nothing
// synchronises is for tests/gpt_graph_test.cpp to show.
#include <gtest/gtest.h>

#include "autograd/tape_case.h"

namespace bloomery::testing {
namespace {

class TapeTest : public ::testing::Test, protected TapeCase {};

TEST_F(TapeTest, FirstWriterOverwritesLaterOnesAdd) {
  Tape tape(stream);
  Context ctx = context(&tape);
  Parameter v = parameter("v"), w = parameter("w");
  const Value x = ctx.wrap(drawn("x"));
  const Value a = times(ctx, x, v), b = times(ctx, x, w);
  tape.set_grad(a.slot, filled(1));
  tape.set_grad(b.slot, filled(1));
  const Sink before = Sink{tape.grad(x.slot)};
  EXPECT_FALSE(before);
  tape.backward();
  const std::vector<float> grad = host(tape.grad(x.slot));
  for (std::int64_t i = 0; i < kCount; ++i) {  // NaN, had the first writer added to poison
    EXPECT_FLOAT_EQ(grad[i], floats(v.value)[i] + floats(w.value)[i]);
  }
}

TEST_F(TapeTest, SinkIsNullWhenNoGradientIsWanted) {
  Tape tape(stream);
  Context ctx = context(&tape);
  Parameter w = parameter("w");
  EXPECT_FALSE(tape.sink(Slot()));
  const Value y = times(ctx, {drawn("x"), nullptr}, w);
  tape.set_grad(y.slot, filled(1));
  tape.backward();
  EXPECT_EQ(host(w.grad), host(drawn("x")));
}

TEST_F(TapeTest, ParametersAreOverwrittenOrAddedToAsTheFlagSays) {
  Parameter w = parameter("w");
  const auto backward = [&](float dy) {
    Tape tape(stream);
    Context ctx = context(&tape);
    const Value y = times(ctx, ctx.wrap(filled(2)), w);
    tape.set_grad(y.slot, filled(dy));
    tape.backward();
  };
  backward(1);
  EXPECT_TRUE(w.grad_written);
  EXPECT_EQ(host(w.grad), std::vector<float>(kCount, 2));  // overwrote the poison
  backward(10);
  EXPECT_EQ(host(w.grad), std::vector<float>(kCount, 22));  // the next micro-batch adds
  w.grad_written = false;
  backward(3);
  EXPECT_EQ(host(w.grad), std::vector<float>(kCount, 6));  // the next step overwrites
}

TEST_F(TapeTest, AParameterWithoutGradientBufferIsAnError) {
  Parameter w = parameter("w");
  w.grad = {};
  Tape tape(stream);
  EXPECT_THROW(tape.sink(w), Error);
}

// The store gives a gradient its memory when the first contribution is about to be written.
TEST_F(TapeTest, OnSinkMayMakeTheBuffer) {
  for (const bool recomputed : {false, true}) {
    Parameter w = parameter("w");
    const Tensor buffer = w.grad;
    w.grad = {};
    Tape tape(stream);
    tape.on_sink = [&](Parameter& p) { p.grad = buffer; };
    Context ctx = context(&tape);
    const Segment segment = [&](Context& inner, const State& s) {
      return State{times(inner, s.stream, w)};
    };
    const Value x = ctx.wrap(filled(2));
    const State s = recomputed ? recompute(ctx, {x}, segment) : segment(ctx, {x});
    tape.set_grad(s.stream.slot, filled(3));
    tape.backward();
    EXPECT_EQ(host(buffer), std::vector<float>(kCount, 6));
  }
}

TEST_F(TapeTest, FrozenParametersGetNoGradientAndKeepNoInput) {
  Parameter frozen = parameter("frozen"), w = parameter("w");
  frozen.frozen = true;
  frozen.grad = {};
  Tape tape(stream);
  std::vector<std::string> contributions;
  tape.on_contribution = [&](Parameter& p) { contributions.push_back(p.name); };
  Context ctx = context(&tape);
  Value x = ctx.wrap(drawn("x"));
  const Slot slot = x.slot;
  const Value y = times(ctx, times(ctx, x, w), frozen);
  tape.set_grad(y.slot, filled(1));
  tape.backward();
  EXPECT_EQ(host(tape.grad(slot))[5], floats(frozen.value)[5] * floats(w.value)[5]);
  EXPECT_EQ(host(w.grad)[5], floats(frozen.value)[5] * floats(x.data)[5]);
  EXPECT_EQ(contributions, (std::vector<std::string>{"w"}));
  EXPECT_TRUE(tape.sink(frozen)) << "an entry that trains another parameter too may write it";
  EXPECT_FALSE(frozen.grad);
}

// As ZeRO-3 does it: after its forward a gathered weight is released, for backward it is gathered
// into other memory. The numbers are others too, so that it shows which were read.
TEST_F(TapeTest, EntriesHoldTheParameterNeverItsTensor) {
  for (const bool recomputed : {false, true}) {
    for (const bool is_deferred : {false, true}) {
      Parameter w = parameter("w");
      WeightQueue queue;
      Tape tape(stream);
      tape.deferred = is_deferred ? &queue : nullptr;
      Context ctx = context(&tape);
      const Segment segment = [&](Context& inner, const State& s) {
        return State{times(inner, s.stream, w)};
      };
      const Value x = ctx.wrap(drawn("x"));
      const State s = recomputed ? recompute(ctx, {x}, segment) : segment(ctx, {x});
      const Tensor gathered_again = drawn("other");
      const std::weak_ptr<Storage> gathered = w.value.storage();
      const std::size_t before = used();
      w.value = {};
      EXPECT_TRUE(gathered.expired());
      EXPECT_EQ(before - used(), kCount * sizeof(float));
      w.value = gathered_again;
      tape.set_grad(s.stream.slot, filled(3));
      tape.backward();
      queue.run_all();
      const std::vector<float> dx = host(tape.grad(x.slot)), dw = host(w.grad);
      for (std::int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(dx[i], 3 * floats(gathered_again)[i]);
        ASSERT_EQ(dw[i], 3 * floats(x.data)[i]);
      }
    }
  }
}

// Gradients of a small residual network with a weight used twice (first in the first block, last
// in the output), under every combination of recomputation and deferral.
struct Outcome {
  std::vector<std::vector<float>> grads;
  std::vector<std::string> contributions;
  std::vector<float> input_grad;
  std::size_t saved_bytes = 0;
  bool operator==(const Outcome& other) const {
    return grads == other.grads && contributions == other.contributions &&
           input_grad == other.input_grad;
  }
};

enum class Recompute { none, blocks, all_in_one, nested };

class Network : public TapeTest {
 protected:
  static constexpr int kBlocks = 3;

  Outcome run(Recompute how, bool deferred) {
    Parameter tied = parameter("tied", 2);
    std::vector<Parameter> weights;
    for (int i = 0; i < kBlocks; ++i) {
      weights.push_back(parameter(concat("w", i)));
    }
    const auto block = [&](int i) -> Segment {
      return [&, i](Context& ctx, const State& s) {
        Value h = i == 0 ? times(ctx, s.stream, tied) : s.stream;
        return State{sum(ctx, s.stream, tanh(ctx, times(ctx, h, weights[i])))};
      };
    };
    const Segment all = [&](Context& ctx, State s) {
      for (int i = 0; i < kBlocks; ++i) {
        const bool inner = how == Recompute::blocks || how == Recompute::nested;
        s = inner ? recompute(ctx, s, block(i)) : block(i)(ctx, s);
      }
      return s;
    };
    Outcome outcome;
    WeightQueue queue;
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      Tape tape(stream);
      tape.deferred = deferred ? &queue : nullptr;
      tape.on_contribution = [&](Parameter& p) { outcome.contributions.push_back(p.name); };
      Context ctx = context(&tape);
      const Value x = ctx.wrap(drawn(concat("x", micro_batch)));
      const bool outer = how == Recompute::all_in_one || how == Recompute::nested;
      const State s = outer ? recompute(ctx, {x}, all) : all(ctx, {x});
      const Value y = times(ctx, s.stream, tied);
      outcome.saved_bytes = tape.saved_bytes();
      tape.set_grad(y.slot, drawn(concat("dy", micro_batch)));
      tape.backward();
      EXPECT_EQ(tape.num_entries(), 0u);
      EXPECT_EQ(queue.size() > 0, deferred);
      queue.run_all();
      outcome.input_grad = host(tape.grad(x.slot));
    }
    outcome.grads.push_back(host(tied.grad));
    for (const Parameter& w : weights) {
      outcome.grads.push_back(host(w.grad));
    }
    return outcome;
  }
};

TEST_F(Network, GradientsEqualFiniteDifferences) {
  Parameter w = parameter("w");
  const auto loss = [&](float nudge) {
    Context ctx = context(nullptr);
    const Value x = {drawn("x"), nullptr};
    floats(x.data)[7] += nudge;
    const std::vector<float> y = host(sum(ctx, x, tanh(ctx, times(ctx, x, w))).data);
    double total = 0;
    for (const float value : y) {
      total += value;
    }
    return total;
  };
  Tape tape(stream);
  Context ctx = context(&tape);
  const Value x = ctx.wrap(drawn("x"));
  const Value y = sum(ctx, x, tanh(ctx, times(ctx, x, w)));
  tape.set_grad(y.slot, filled(1));
  tape.backward();
  EXPECT_NEAR(floats(tape.grad(x.slot))[7], (loss(1e-2f) - loss(-1e-2f)) / 2e-2, 2e-3);
}

TEST_F(Network, ContributionsComeInProgramOrder) {
  const std::vector<std::string> order = {"tied", "w2", "w1", "w0", "tied",
                                          "tied", "w2", "w1", "w0", "tied"};
  EXPECT_EQ(run(Recompute::none, false).contributions, order);
  EXPECT_EQ(run(Recompute::blocks, false).contributions, order);
  EXPECT_EQ(run(Recompute::none, true).contributions, order);
}

TEST_F(Network, RecomputationAndDeferralChangeNoBit) {
  const Outcome plain = run(Recompute::none, false);
  for (const Recompute how :
       {Recompute::none, Recompute::blocks, Recompute::all_in_one, Recompute::nested}) {
    for (const bool deferred : {false, true}) {
      const Outcome outcome = run(how, deferred);
      EXPECT_EQ(outcome, plain) << static_cast<int>(how) << deferred;
      if (how != Recompute::none) {
        EXPECT_LT(outcome.saved_bytes, plain.saved_bytes);
      }
    }
  }
}

TEST_F(TapeTest, DeferredWeightGradientsRunOneByOneInRecordedOrder) {
  WeightQueue queue;
  Tape tape(stream);
  tape.deferred = &queue;
  std::vector<std::string> ready;
  tape.on_contribution = [&](Parameter& p) { ready.push_back(p.name); };
  Context ctx = context(&tape);
  Parameter v = parameter("v"), w = parameter("w");
  const Value x = ctx.wrap(drawn("x"));
  const Value y = times(ctx, times(ctx, x, v), w);
  tape.set_grad(y.slot, filled(1));
  tape.backward();
  EXPECT_TRUE(tape.grad(x.slot));  // input gradients came at once
  EXPECT_FALSE(w.grad_written);
  EXPECT_TRUE(queue.run_one());
  EXPECT_TRUE(w.grad_written);
  EXPECT_FALSE(v.grad_written);
  EXPECT_EQ(ready, (std::vector<std::string>{"w"}));
  EXPECT_TRUE(queue.run_one());
  EXPECT_FALSE(queue.run_one());
  EXPECT_EQ(ready, (std::vector<std::string>{"w", "v"}));
}

TEST_F(TapeTest, AdoptHandsTheBufferOverUnlessItCannot) {
  Tape tape(stream);
  const Value a = tape.value(filled(0)), y = tape.value(filled(0));
  tape.set_grad(y.slot, filled(5));
  EXPECT_FALSE(tape.adopt(nullptr, y.slot));
  EXPECT_TRUE(tape.adopt(a.slot, y.slot));
  EXPECT_EQ(tape.grad(a.slot).data(), tape.grad(y.slot).data());
  EXPECT_FALSE(tape.adopt(a.slot, y.slot));  // has one already

  const Value folded = tape.value(filled(0).reshape({kCount / 2, 2}));
  EXPECT_TRUE(tape.adopt(folded.slot, y.slot));
  EXPECT_EQ(tape.grad(folded.slot).shape(), (Shape{kCount / 2, 2}));

  const Value other = tape.value(Tensor::empty(stream, DType::bf16, {kCount}));
  EXPECT_FALSE(tape.adopt(other.slot, y.slot));

  WeightQueue queue;
  tape.deferred = &queue;
  const Value b = tape.value(filled(0));
  EXPECT_FALSE(tape.adopt(b.slot, y.slot));
}

TEST_F(TapeTest, SharedGradientsAreCopiedBeforeTheyAreWritten) {
  Tape tape(stream);
  const Value total = tape.value(filled(0)), branch = tape.value(filled(0));
  tape.set_grad(total.slot, filled(5));
  EXPECT_TRUE(tape.exclusive(total.slot));
  ASSERT_TRUE(tape.share(branch.slot, total.slot));
  EXPECT_FALSE(tape.exclusive(total.slot));
  EXPECT_EQ(tape.grad(branch.slot).data(), tape.grad(total.slot).data());
  const Sink sink = tape.sink(total.slot);
  EXPECT_TRUE(sink.add);
  write(sink, [](auto) { return 2.0f; });
  EXPECT_EQ(host(tape.grad(total.slot)), std::vector<float>(kCount, 7));
  EXPECT_EQ(host(tape.grad(branch.slot)), std::vector<float>(kCount, 5));
  EXPECT_TRUE(tape.exclusive(branch.slot));
}

// Pipelines keep several micro-batches in flight.
TEST_F(TapeTest, TapesAreIndependentAndMayInterleave) {
  Parameter w = parameter("w");
  Tape first(stream), second(stream);
  int ready = 0;
  first.on_contribution = second.on_contribution = [&](Parameter&) { ++ready; };
  Context a = context(&first), b = context(&second);
  const Value y1 = times(a, a.wrap(filled(1)), w), y2 = times(b, b.wrap(filled(10)), w);
  first.set_grad(y1.slot, filled(1));
  second.set_grad(y2.slot, filled(1));
  second.backward();
  EXPECT_EQ(first.num_entries(), 1u);
  first.backward();
  EXPECT_EQ(ready, 2);
  EXPECT_EQ(host(w.grad), std::vector<float>(kCount, 11));
}

TEST_F(TapeTest, DescribeListsEntriesAndCountsSharedStorageOnce) {
  Tape tape(stream);
  Context ctx = context(&tape);
  Parameter v = parameter("v"), w = parameter("w");
  const Value x = ctx.wrap(drawn("x"));
  const Value y = sum(ctx, times(ctx, x, v), times(ctx, x, w));  // both keep x
  tanh(ctx, y);                                                  // keeps its output
  EXPECT_EQ(tape.saved_bytes(), 2 * kCount * sizeof(float));
  EXPECT_EQ(tape.num_entries(), 4u);
  const auto line = [](const std::string& op, const std::string& shape, const std::string& bytes) {
    return op + std::string(24 - op.size(), ' ') + shape + std::string(28 - shape.size(), ' ') +
           std::string(16 - bytes.size(), ' ') + bytes + "\n";
  };
  EXPECT_EQ(tape.describe(), line("op", "output", "saved bytes") + line("times", "[256]", "1024") +
                                 line("times", "[256]", "0") + line("sum", "[256]", "0") +
                                 line("tanh", "[256]", "1024") + line("total", "", "2048"));
}

// What an entry kept is given back as soon as its backward is done, not when all are.
TEST_F(TapeTest, BackwardFreesAsItGoes) {
  constexpr int kDepth = 20;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  std::vector<Parameter> weights;
  for (int i = 0; i < kDepth; ++i) {
    weights.push_back(parameter(concat("w", i)));
  }
  Tape tape(stream);
  std::vector<std::size_t> used_then;
  tape.on_contribution = [&](Parameter&) { used_then.push_back(used()); };
  const std::size_t before = used();
  {
    Context ctx = context(&tape);
    Value x = ctx.wrap(drawn("x"));
    for (Parameter& w : weights) {
      x = times(ctx, x, w);
    }
    tape.set_grad(x.slot, filled(1));
  }
  EXPECT_GE(used() - before, (kDepth + 1) * kBytes);
  tape.backward();
  ASSERT_EQ(used_then.size(), static_cast<std::size_t>(kDepth));
  for (int i = 1; i < kDepth - 1; ++i) {  // at the last, the input's gradient has gone too
    EXPECT_EQ(used_then[i - 1] - used_then[i], kBytes) << i;
  }
  EXPECT_EQ(used(), before);
}

}  // namespace
}  // namespace bloomery::testing
