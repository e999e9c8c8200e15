#include "parallel/conjugates.h"

#include "comm/mesh.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

// dx = dy: x takes over the buffer, or dy is added to what x has.
void hand_over(Tape& tape, const Slot& x, const Slot& y) {
  if (!tape.adopt(x, y)) {
    write_grad(tape.stream(), tape.grad(y), tape.sink(x));
  }
}

}  // namespace

Value copy_to_tensor(Context& context, const Value& x) {
  const OpScope scope(context.stream, "copy_to_tensor");
  Value y = context.wrap(x.data);
  if (context.tape != nullptr) {
    Communicator& ranks = context.mesh.axis(Axis::tensor);
    context.tape->record({.op = "copy_to_tensor",
                          .input_gradient =
                              [x = x.slot, y = y.slot, &ranks](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                const Tensor own = tape.sink(y).target;  // a copy if it was shared
                                ranks.all_reduce(own, Reduce::sum, tape.stream());
                                hand_over(tape, x, y);
                              },
                          .shape = y.shape()});
  }
  return y;
}

Value reduce_from_tensor(Context& context, const Value& x) {
  const OpScope scope(context.stream, "reduce_from_tensor");
  context.mesh.axis(Axis::tensor).all_reduce(x.data, Reduce::sum, context.stream);
  Value y = context.wrap(x.data);
  if (context.tape != nullptr) {
    context.tape->record({.op = "reduce_from_tensor",
                          .input_gradient =
                              [x = x.slot, y = y.slot](Tape& tape) {
                                if (tape.grad(y)) {
                                  hand_over(tape, x, y);
                                }
                              },
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
