// When a parallel linear communicates and where its gradients go; layers_test.cpp has its numbers.
#include "parallel/parallel_linear.h"

#include <gtest/gtest.h>

#include "comm/threads.h"

namespace bloomery {
namespace {

constexpr std::int64_t kTokens = 3, kWidth = 4;

// One of two ranks, without the other: notes what it is asked to sum.
class LoneRank final : public Communicator {
 public:
  explicit LoneRank(std::function<void(View, Stream&)> on_sum) : on_sum_(std::move(on_sum)) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void all_reduce(View data, Reduce, Stream& stream) override { on_sum_(data, stream); }
  void all_gather(ConstView, View, Stream&) override {}
  void reduce_scatter(ConstView, View, Reduce, Stream&) override {}
  void broadcast(View, int, Stream&) override {}
  void all_to_all(ConstView, View, const Counts&, Stream&) override {}
  void exchange(std::span<const Transfer>, Stream&) override {}
  std::unique_ptr<Communicator> split(int, int) override {
    return std::make_unique<LoneRank>(on_sum_);
  }
  HostGroup& host() override { return *host_; }

 private:
  std::unique_ptr<HostGroup> host_ = make_self_host_group();
  std::function<void(View, Stream&)> on_sum_;
};

Tensor filled(Stream& stream, std::int64_t width, float value) {
  return Tensor::from_host(stream,
                           std::vector<float>(static_cast<std::size_t>(kTokens * width), value),
                           {kTokens, width});
}

// Weights of `value` and room for their gradients.
void prepare(const ParallelLinear& layer, Stream& stream, float value) {
  ParameterList parameters;
  layer.collect(parameters);
  for (Parameter* p : parameters) {
    p->value = Tensor::from_host(
        stream, std::vector<float>(static_cast<std::size_t>(p->local_shape.numel()), value),
        p->local_shape);
    p->grad = Tensor::empty(stream, DType::fp32, p->local_shape);
  }
}

void expect_all(Stream& stream, const Tensor& tensor, float value) {
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor.to_host<float>(stream),
            std::vector<float>(static_cast<std::size_t>(tensor.numel()), value));
}

TEST(ParallelLinear, SumsTheInputGradientBeforeTheWeightGradientOnItsOwnStream) {
  for (const bool beside : {false, true}) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device), communication(device, StreamMode::queued);
    Parameter* weight = nullptr;
    int sums = 0;
    const auto on_sum = [&](View data, Stream& on) {
      ++sums;
      EXPECT_EQ(data.shape, (Shape{kTokens, kWidth}));
      EXPECT_FALSE(weight->grad_written);
      EXPECT_EQ(&on, beside ? &communication : &stream);
    };
    Mesh mesh({.tensor = 2}, std::make_unique<LoneRank>(on_sum));
    const ParallelLinear layer =
        ParallelLinear::column(mesh, "layer", {kWidth}, 0, kWidth, false, {});
    ParameterList parameters;
    layer.collect(parameters);
    weight = parameters[0];
    prepare(layer, stream, 1);
    const Batch batch;
    Tape tape(stream);
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    context.communication = beside ? &communication : nullptr;
    const Value x = tape.value(filled(stream, kWidth, 1));
    const Value y = layer(context, x);
    EXPECT_EQ(sums, 0);
    tape.set_grad(y.slot, filled(stream, kWidth / 2, 1));
    tape.backward();
    EXPECT_EQ(sums, 1);
    EXPECT_TRUE(weight->grad_written);
  }
}

// Runs body(context, rank) on every rank of a tensor axis, with a stream for communication.
void on_ranks(int size, const std::function<void(Context&, int)>& body) {
  run_ranks(size, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device), communication(device, StreamMode::queued);
    Mesh mesh({.tensor = size}, std::move(world));
    const Batch batch;
    Tape tape(stream);
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    context.communication = &communication;
    body(context, rank);
    communication.synchronize();
    mesh.world().host().barrier("end");
  });
}

// Rank r has weights of r + 1 and an output gradient of ones: dx = 2 features * (1 + 2).
TEST(ParallelLinear, AddsToAGradientThatIsThere) {
  on_ranks(2, [](Context& context, int rank) {
    Tape& tape = *context.tape;
    const ParallelLinear layer =
        ParallelLinear::column(context.mesh, "layer", {4}, 0, kWidth, false, {});
    prepare(layer, context.stream, static_cast<float>(rank + 1));
    const Value x = tape.value(filled(context.stream, kWidth, 1));
    const Value y = layer(context, x);
    tape.set_grad(x.slot, filled(context.stream, kWidth, 10));
    tape.set_grad(y.slot, filled(context.stream, 2, 1));
    tape.backward();
    expect_all(context.stream, tape.grad(x.slot), 16);
  });
}

// The gradient of y is also read by another value and must stay as it is.
TEST(ParallelLinear, LeavesASharedGradientAlone) {
  on_ranks(2, [](Context& context, int rank) {
    Tape& tape = *context.tape;
    const ParallelLinear layer = ParallelLinear::row(context.mesh, "layer", kWidth, 4, true, {});
    prepare(layer, context.stream, static_cast<float>(rank + 1));
    const Value other = tape.value(filled(context.stream, kWidth, 0));
    const Value x = tape.value(filled(context.stream, 2, 1));
    const Value y = layer(context, x);
    expect_all(context.stream, y.data, 2 * 1 + 2 * 2 + 1);  // the first rank's bias alone
    tape.set_grad(other.slot, filled(context.stream, kWidth, 1));
    ASSERT_TRUE(tape.share(y.slot, other.slot));
    tape.backward();
    expect_all(context.stream, tape.grad(x.slot), static_cast<float>(4 * (rank + 1)));
    expect_all(context.stream, tape.grad(other.slot), 1);
  });
}

TEST(ParallelLinear, NeedsNoTape) {
  on_ranks(2, [](Context& context, int rank) {
    context.tape = nullptr;
    const ParallelLinear up = ParallelLinear::column(context.mesh, "up", {4}, 0, kWidth, false, {});
    const ParallelLinear down = ParallelLinear::row(context.mesh, "down", kWidth, 4, false, {});
    prepare(up, context.stream, static_cast<float>(rank + 1));
    prepare(down, context.stream, 1);
    const Value y = down(context, up(context, Value{filled(context.stream, kWidth, 1), {}}));
    EXPECT_EQ(y.slot, nullptr);
    expect_all(context.stream, y.data, 2 * 4 * 1 + 2 * 4 * 2);
  });
}

TEST(ParallelLinear, RefusesAnActivationOfPartsOfASum) {
  on_ranks(2, [](Context& context, int) {
    const ParallelLinear layer = ParallelLinear::row(context.mesh, "layer", kWidth, 4, false, {});
    prepare(layer, context.stream, 1);
    const Value x = context.wrap(filled(context.stream, 2, 1));
    EXPECT_THROW(layer(context, x, Activation::gelu_tanh), Error);
  });
}

// With recomputation the sums of a segment are repeated in order; deferring changes nothing.
TEST(ParallelLinear, ComposesWithRecomputationAndDeferral) {
  for (const bool recomputed : {false, true}) {
    for (const bool deferred : {false, true}) {
      on_ranks(4, [=](Context& context, int rank) {
        const ParallelLinear up =
            ParallelLinear::column(context.mesh, "up", {8}, 0, kWidth, false, {});
        const ParallelLinear down = ParallelLinear::row(context.mesh, "down", kWidth, 8, false, {});
        prepare(up, context.stream, static_cast<float>(rank + 1));
        prepare(down, context.stream, 1);
        WeightQueue queue;
        context.tape->deferred = deferred ? &queue : nullptr;
        const Segment segment = [&](Context& inner, State s) {
          return State{down(inner, up(inner, s.stream))};
        };
        const Value x = context.wrap(filled(context.stream, kWidth, 1));
        const State out = recomputed ? recompute(context, {x}, segment) : segment(context, {x});
        expect_all(context.stream, out.stream.data, 2 * 4 * (1 + 2 + 3 + 4));
        context.tape->set_grad(out.stream.slot, filled(context.stream, kWidth, 1));
        context.tape->backward();
        queue.run_all();
        expect_all(context.stream, context.tape->grad(x.slot), 2 * 4 * (1 + 2 + 3 + 4));
        expect_all(context.stream, x.data, 1);
        ParameterList parameters;
        up.collect(parameters);
        down.collect(parameters);
        expect_all(context.stream, parameters[0]->grad, kTokens * kWidth);
        expect_all(context.stream, parameters[1]->grad,
                   static_cast<float>(kTokens * kWidth * (rank + 1)));
      });
    }
  }
}

}  // namespace
}  // namespace bloomery
