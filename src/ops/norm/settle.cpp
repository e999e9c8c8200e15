#include "ops/norm/settle.h"

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {

bool addend_fits(DType stream, DType addend) {
  return is_floating(stream) &&
         (stream == addend ||
          (stream == DType::fp32 && (addend == DType::bf16 || addend == DType::fp16)));
}

void settle_backward(Tape& tape, const SettleRecord& record) {
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

Value settle(Context& context, const Value& stream, const Value& pending,
             const DropoutOptions& dropout) {
  if (!pending) {
    return stream;
  }
  const OpScope scope(context.stream, "settle");
  check(pending.shape() == stream.shape() && addend_fits(stream.dtype(), pending.dtype()),
        "settle: pending ", pending.dtype(), pending.shape(), " and stream ", stream.dtype(),
        stream.shape(),
        " must have one shape and one dtype, or the stream fp32 and pending bf16 or fp16");
  const ActiveDropout active = active_dropout(context, dropout, stream.shape().rows(), "settle");
  Value out = context.output(stream.dtype(), stream.shape());
  launch(
      context.stream,
      Settle{.stream = stream.data, .pending = pending.data, .out = out.data, .mask = active.mask});
  if (context.tape != nullptr) {
    context.tape->record(
        {.op = "settle",
         .input_gradient = [record = SettleRecord{stream.slot, pending.slot, out.slot, active}](
                               Tape& tape) { settle_backward(tape, record); },
         .shape = out.shape()});
  }
  return out;
}

}  // namespace bloomery
