#include "autograd/context.h"
#include "autograd/inputs_on_host.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

// Hands the gradient that the outer tape collected for an output to the repeated forward.
void move_grad(const Slot& from, const Slot& to) {
  if (from != nullptr && to != nullptr && from != to) {
    to->grad = std::move(from->grad);
    to->sharers = std::move(from->sharers);
  }
}

}  // namespace

State recompute(Context& context, const State& state, const Segment& segment) {
  if (context.tape == nullptr) {
    return segment(context, state);
  }
  check(!state.pending, "recompute: the state has a pending branch; settle it first");
  Context forward = context;
  forward.tape = nullptr;
  State result = segment(forward, state);
  for (auto field : {&State::stream, &State::pending, &State::encoder}) {
    Value& value = result.*field;
    if (value && value.slot == nullptr) {  // a value that still has its slot was passed through
      value = context.wrap(value.data);
    }
  }

  Entry entry;
  entry.op = "recompute";
  const KeptInput kept(context, state.stream.data);
  State input = state;
  input.stream.data = {};
  entry.saved = {kept.on_device(), state.encoder.data};
  entry.shape = result.stream.shape();
  entry.input_gradient = [context, input, kept, segment, stream = result.stream.slot,
                          pending = result.pending.slot,
                          encoder = result.encoder.slot](Tape& tape) {
    Tape inner(tape.stream());
    Context again = context;
    again.tape = &inner;
    again.recomputing = true;
    State state = input;
    state.stream.data = kept.take();
    const State repeated = [&] {
      const OpScope phase(tape.stream(), OpKind::recompute);
      return segment(again, state);
    }();
    move_grad(stream, repeated.stream.slot);
    move_grad(pending, repeated.pending.slot);
    move_grad(encoder, repeated.encoder.slot);
    tape.run_nested(inner);
  };
  context.tape->record(std::move(entry));
  return result;
}

}  // namespace bloomery
