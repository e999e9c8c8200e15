#include "ops/norm/add_pending.h"

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {

bool addend_fits(DType stream, DType addend) {
  return is_floating(stream) &&
         (stream == addend ||
          (stream == DType::fp32 && (addend == DType::bf16 || addend == DType::fp16)));
}

void add_pending_backward(Tape& tape, const PendingRecord& record) {
  const Tensor grad = tape.grad(record.out);
  if (!grad) {
    return;
  }
  if (record.dropout.mask) {
    if (const Sink sink = tape.sink(record.pending)) {
      launch(
          tape.stream(),
          ApplyDropout{.x = grad, .y = sink.target, .mask = record.dropout.mask, .add = sink.add});
    }
  } else if (!tape.share(record.pending, record.out)) {
    write_grad(tape.stream(), grad, tape.sink(record.pending));
  }
  if (!tape.adopt(record.stream, record.out)) {
    write_grad(tape.stream(), grad, tape.sink(record.stream));
  }
}

Value add_pending(Context& context, const Value& stream, const Value& pending,
                  const DropoutOptions& dropout) {
  if (!pending) {
    return stream;
  }
  const OpScope scope(context.stream, "add_pending");
  check(pending.shape() == stream.shape() && addend_fits(stream.dtype(), pending.dtype()),
        "add_pending: pending ", pending.dtype(), pending.shape(), " and stream ", stream.dtype(),
        stream.shape(),
        " must have one shape and one dtype, or the stream fp32 and pending bf16 or fp16");
  const ActiveDropout active =
      active_dropout(context, dropout, stream.shape().rows(), "add_pending");
  Value out = context.output(stream.dtype(), stream.shape());
  launch(
      context.stream,
      Settle{.stream = stream.data, .pending = pending.data, .out = out.data, .mask = active.mask});
  if (context.tape != nullptr) {
    context.tape->record(
        {.op = "add_pending",
         .input_gradient = [record = PendingRecord{stream.slot, pending.slot, out.slot, active}](
                               Tape& tape) { add_pending_backward(tape, record); },
         .shape = out.shape()});
  }
  return out;
}

}  // namespace bloomery
