#include "parallel/ulysses.h"

#include "ops/arithmetic/arithmetic.h"
#include "ops/transpose/transpose.h"

namespace bloomery {
namespace {

// Rows of equal parts, one part to and from each rank.
Tensor exchanged(Communicator& ranks, const Tensor& parts, Stream& stream) {
  const std::vector<std::int64_t> rows(static_cast<std::size_t>(ranks.size()),
                                       parts.shape()[0] / ranks.size());
  Tensor in = Tensor::empty(stream, parts.dtype(), parts.shape());
  ranks.all_to_all(parts, in, {rows, rows}, stream);
  return in;
}

Tensor swapped(const Tensor& x, const Shape& shape, std::int64_t first, std::int64_t second,
               Stream& stream) {
  Tensor y = Tensor::empty(stream, x.dtype(), shape);
  launch(stream, Transpose{.x = x, .y = y, .first = first, .second = second});
  return y;
}

// [sequences, part, ranks, share] to [ranks, sequences, part, share], to the ranks, and what comes,
// in this order again but of the parts of all ranks, to [sequences, ranks, part, share].
Tensor to_heads(Communicator& ranks, const Tensor& x, std::int64_t sequences, Stream& stream) {
  const std::int64_t size = ranks.size(), tokens = x.shape()[0], share = x.shape()[1] / size;
  const Shape shape{tokens * size, share};
  const Tensor in = exchanged(ranks, swapped(x, shape, tokens, size, stream), stream);
  return sequences == 1 ? in : swapped(in, shape, size, sequences, stream);
}

Tensor to_tokens(Communicator& ranks, const Tensor& x, std::int64_t sequences, Stream& stream) {
  const std::int64_t size = ranks.size(), tokens = x.shape()[0] / size, share = x.shape()[1];
  const Tensor out = sequences == 1 ? x : swapped(x, x.shape(), sequences, size, stream);
  return swapped(exchanged(ranks, out, stream), {tokens, share * size}, size, tokens, stream);
}

using Move = Tensor (*)(Communicator&, const Tensor&, std::int64_t, Stream&);

// A permutation over ranks: its gradient goes the way back.
Value moved(Context& context, const Value& x, const char* op, Move there, Move back) {
  const OpScope scope(context.stream, op);
  Communicator& ranks = context.mesh.axis(Axis::ulysses);
  const std::int64_t sequences = context.batch.num_sequences;
  Value y = context.wrap(there(ranks, x.data, sequences, context.stream));
  if (context.tape != nullptr && x.wants_grad()) {
    context.tape->record({.op = op,
                          .input_gradient =
                              [&ranks, sequences, back, x = x.slot, y = y.slot](Tape& tape) {
                                Tensor grad = back(ranks, tape.grad(y), sequences, tape.stream());
                                if (x->grad) {
                                  write_grad(tape.stream(), grad, tape.sink(x));
                                } else {
                                  tape.set_grad(x, std::move(grad));
                                }
                              },
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace

Value heads_of_whole_sequences(Context& context, const Value& x) {
  return moved(context, x, "heads_of_whole_sequences", to_heads, to_tokens);
}

Value tokens_of_all_heads(Context& context, const Value& x) {
  return moved(context, x, "tokens_of_all_heads", to_tokens, to_heads);
}

}  // namespace bloomery
