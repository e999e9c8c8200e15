#include "parallel/conjugates.h"

#include <gtest/gtest.h>

#include "comm/mesh.h"
#include "comm/threads.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

// Runs body(context, rank) on every rank of a tensor axis.
void on_ranks(int size, const std::function<void(Context&, int)>& body) {
  run_ranks(size, [&](int rank, std::unique_ptr<Communicator> world) {
    Device device({.num_threads = 1, .poison = true});
    Stream stream(device);
    Mesh mesh({.tensor = size}, std::move(world));
    const Batch batch;
    Tape tape(stream);
    Context context{.stream = stream, .mesh = mesh, .batch = batch, .tape = &tape};
    body(context, rank);
  });
}

Tensor filled(Context& context, float value) {
  return Tensor::from_host(context.stream, std::vector<float>(5, value), {5});
}

void expect_all(Context& context, const Tensor& tensor, float value) {
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor.to_host<float>(context.stream), std::vector<float>(5, value));
}

TEST(CopyToTensor, IsTheIdentityForwardAndASumBackward) {
  on_ranks(3, [](Context& context, int rank) {
    const Value x = context.wrap(filled(context, 2));
    const Value y = copy_to_tensor(context, x);
    EXPECT_EQ(y.data.data(), x.data.data());
    EXPECT_NE(y.slot, x.slot);
    const Tensor grad = filled(context, static_cast<float>(rank + 1));
    context.tape->set_grad(y.slot, grad);
    context.tape->backward();
    expect_all(context, context.tape->grad(x.slot), 1 + 2 + 3);
    EXPECT_EQ(context.tape->grad(x.slot).data(), grad.data());  // took the buffer over
  });
}

TEST(CopyToTensor, AddsToAGradientThatIsThere) {
  on_ranks(2, [](Context& context, int rank) {
    const Value x = context.wrap(filled(context, 2));
    const Value y = copy_to_tensor(context, x);
    context.tape->set_grad(x.slot, filled(context, 10));
    context.tape->set_grad(y.slot, filled(context, static_cast<float>(rank + 1)));
    context.tape->backward();
    expect_all(context, context.tape->grad(x.slot), 13);
  });
}

// y's gradient is also read by another value: the sum must not be formed in the shared buffer.
TEST(CopyToTensor, LeavesASharedGradientAlone) {
  on_ranks(2, [](Context& context, int rank) {
    Tape& tape = *context.tape;
    const Value x = context.wrap(filled(context, 2)), other = context.wrap(filled(context, 3));
    const Value y = copy_to_tensor(context, x);
    tape.set_grad(other.slot, filled(context, static_cast<float>(rank + 1)));
    ASSERT_TRUE(tape.share(y.slot, other.slot));
    tape.backward();
    expect_all(context, tape.grad(x.slot), 3);
    expect_all(context, tape.grad(other.slot), static_cast<float>(rank + 1));
  });
}

TEST(CopyToTensor, ContributesNothingWhenNobodyUsedIt) {
  on_ranks(2, [](Context& context, int) {
    const Value x = context.wrap(filled(context, 2));
    copy_to_tensor(context, x);
    context.tape->backward();
    EXPECT_FALSE(context.tape->grad(x.slot));
  });
}

TEST(ReduceFromTensor, IsASumForwardAndTheIdentityBackward) {
  on_ranks(3, [](Context& context, int rank) {
    const Value x = context.wrap(filled(context, static_cast<float>(rank + 1)));
    const Value y = reduce_from_tensor(context, x);
    EXPECT_EQ(y.data.data(), x.data.data());
    expect_all(context, y.data, 6);
    const Tensor grad = filled(context, static_cast<float>(rank));
    context.tape->set_grad(y.slot, grad);
    context.tape->backward();
    EXPECT_EQ(context.tape->grad(x.slot).data(), grad.data());
    expect_all(context, context.tape->grad(x.slot), static_cast<float>(rank));
  });
}

TEST(ReduceFromTensor, NeedsNoTape) {
  on_ranks(2, [](Context& context, int rank) {
    context.tape = nullptr;
    const Value y = reduce_from_tensor(context, {filled(context, static_cast<float>(rank)), {}});
    expect_all(context, y.data, 1);
    EXPECT_EQ(y.slot, nullptr);
    EXPECT_EQ(copy_to_tensor(context, y).slot, nullptr);
  });
}

// y = 2 sum over ranks of (rank + 1) x, whose gradient is 2 sum of (rank + 1) on every rank. With
// recomputation the collectives of the segment are repeated in order; deferring changes nothing.
TEST(Conjugates, ComposeWithRecomputationAndDeferral) {
  for (const bool recomputed : {false, true}) {
    for (const bool deferred : {false, true}) {
      on_ranks(4, [=](Context& context, int rank) {
        WeightQueue queue;
        context.tape->deferred = deferred ? &queue : nullptr;
        const Segment segment = [rank](Context& inner, State s) {
          const Value part =
              scale(inner, copy_to_tensor(inner, s.stream), static_cast<float>(rank + 1));
          return State{scale(inner, reduce_from_tensor(inner, part), 2)};
        };
        const Value x = context.wrap(filled(context, 1));
        const State out = recomputed ? recompute(context, {x}, segment) : segment(context, {x});
        expect_all(context, out.stream.data, 20);
        context.tape->set_grad(out.stream.slot, filled(context, 1));
        context.tape->backward();
        queue.run_all();
        expect_all(context, context.tape->grad(x.slot), 20);
        expect_all(context, x.data, 1);
      });
    }
  }
}

}  // namespace
}  // namespace bloomery
