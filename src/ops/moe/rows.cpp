#include "ops/moe/rows.h"

namespace bloomery {
namespace {

Shape with_rows(const Value& x, std::int64_t rows) { return {rows, x.shape().back()}; }

}  // namespace

Value permute(Context& context, const Value& x, const Dispatch& dispatch) {
  const OpScope scope(context.stream, "permute");
  const std::int64_t topk = dispatch.places.shape()[1];
  check(dispatch.places.shape()[0] == x.shape().rows(), "permute: ", x.shape().rows(),
        " tokens, but ", dispatch.places.shape()[0], " were sorted");
  Value y = context.output(x.dtype(), with_rows(x, dispatch.groups.rows));
  launch(context.stream,
         GatherRows{.x = x.data, .index = dispatch.source, .y = y.data, .per_row = topk});
  if (context.tape != nullptr && x.wants_grad()) {
    context.tape->record(
        {.op = "permute",
         .input_gradient =
             [x = x.slot, y = y.slot, places = dispatch.places](Tape& tape) {
               const Sink sink = tape.sink(x);
               launch(
                   tape.stream(),
                   SumRows{.x = tape.grad(y), .index = places, .y = sink.target, .add = sink.add});
             },
         .saved = {dispatch.places},
         .shape = y.shape()});
  }
  return y;
}

Value combine(Context& context, const Value& rows, const Value& gates, const Dispatch& dispatch) {
  const OpScope scope(context.stream, "combine");
  const std::int64_t topk = dispatch.places.shape()[1];
  Value y = context.output(rows.dtype(), with_rows(rows, dispatch.places.shape()[0]));
  launch(context.stream,
         SumRows{.x = rows.data, .index = dispatch.places, .weights = gates.data, .y = y.data});
  if (context.tape != nullptr) {
    context.tape->record({.op = "combine",
                          .input_gradient =
                              [rows, gates, y = y.slot, dispatch, topk](Tape& tape) {
                                const Tensor& grad = tape.grad(y);
                                check(static_cast<bool>(grad), "combine: no gradient arrived");
                                if (const Sink sink = tape.sink(rows.slot)) {
                                  check(!sink.add, "combine: the rows of experts have one use");
                                  launch(tape.stream(), GatherRows{.x = grad,
                                                                   .index = dispatch.source,
                                                                   .factors = gates.data,
                                                                   .y = sink.target,
                                                                   .per_row = topk});
                                }
                                if (const Sink sink = tape.sink(gates.slot)) {
                                  launch(tape.stream(), RowDots{.a = grad,
                                                                .b = rows.data,
                                                                .index = dispatch.places,
                                                                .y = sink.target,
                                                                .add = sink.add});
                                }
                              },
                          .saved = {rows.data, gates.data, dispatch.source, dispatch.places},
                          .shape = y.shape()});
  }
  return y;
}

Value move_rows(Context& context, const Value& x, const Tensor& from, const Tensor& to) {
  const OpScope scope(context.stream, "move_rows");
  Value y = context.output(x.dtype(), with_rows(x, from.numel()));
  launch(context.stream, GatherRows{.x = x.data, .index = from, .y = y.data});
  if (context.tape != nullptr && x.wants_grad()) {
    context.tape->record(
        {.op = "move_rows",
         .input_gradient =
             [x = x.slot, y = y.slot, to](Tape& tape) {
               const Sink sink = tape.sink(x);
               check(!sink.add, "move_rows: its input has one use");
               launch(tape.stream(), GatherRows{.x = tape.grad(y), .index = to, .y = sink.target});
             },
         .saved = {to},
         .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
