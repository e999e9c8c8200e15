#include "ops/token_choice/token_choice.h"

#include "autograd/batch_fields.h"

namespace bloomery {
namespace {

std::int64_t count_of(const TokenRange& range, std::int64_t all) {
  return range.count == TokenRange::kRest ? all - range.first : range.count;
}

void check_rows(const char* op, const Value& x, std::int64_t rows) {
  check(x.shape().rank() == 2 && x.shape()[0] == rows, op, ": x is ", x.shape(), ", but ", rows,
        " tokens are expected");
}

}  // namespace

TokenChoice choose_tokens(Context& context, RandomKey key, std::int64_t kept) {
  const OpScope scope(context.stream, "choose_tokens");
  const Batch& batch = context.batch;
  check(kept >= 1 && kept < batch.length, "choose_tokens: ", kept, " of ", batch.length, " tokens");
  check(!batch.whole && batch.samples && batch.samples.numel() == batch.num_sequences,
        "choose_tokens: the sequences of the batch must be whole");
  TokenChoice choice{.num_sequences = batch.num_sequences, .length = batch.length, .kept = kept};
  choice.rows = Tensor::empty(context.stream, DType::int32, {choice.num_chosen()});
  choice.number = Tensor::empty(context.stream, DType::int32, {batch.num_tokens()});
  launch(context.stream, DrawKeptTokens{.samples = batch.samples,
                                        .rows = choice.rows,
                                        .number = choice.number,
                                        .length = batch.length,
                                        .kept = kept,
                                        .key = key});
  return choice;
}

Batch chosen_batch(Context& context, const TokenChoice& choice) {
  const OpScope scope(context.stream, "chosen_batch");
  Stream& stream = context.stream;
  const Batch& all = context.batch;
  Batch chosen = all;
  chosen.length = choice.kept;
  for (const BatchField& field : kBatchFields) {
    if (field.is_per_token()) {
      chosen.*field.tensor = {};
    }
  }
  const auto fresh = [&](const Tensor& of) {
    return of ? Tensor::empty(stream, DType::int32, {choice.num_chosen()}) : Tensor();
  };
  chosen.positions = fresh(all.positions);
  chosen.key_begin = fresh(all.key_begin);
  chosen.key_end = fresh(all.key_end);
  launch(stream, ChosenNumbers{.rows = choice.rows,
                               .positions = all.positions,
                               .key_begin = all.key_begin,
                               .key_end = all.key_end,
                               .chosen_positions = chosen.positions,
                               .chosen_begin = chosen.key_begin,
                               .chosen_end = chosen.key_end,
                               .length = all.length,
                               .kept = choice.kept});
  // Counted: the first of what counts the places of the whole.
  chosen.places = all.places ? all.places.range(0, {choice.kept}) : Tensor();
  return chosen;
}

Value take_chosen(Context& context, const Value& x, const TokenChoice& choice,
                  const TokenRange& part) {
  const OpScope scope(context.stream, "take_chosen");
  check_rows("take_chosen", x, choice.num_sequences * choice.length);
  const std::int64_t count = count_of(part, choice.num_chosen());
  Value y = context.output(x.dtype(), {count, x.shape()[1]});
  launch(context.stream,
         SelectRows{.index = choice.rows.range(part.first, {count}), .from = x.data, .to = y.data});
  if (context.tape != nullptr) {
    context.tape->record(
        {.op = "take_chosen",
         .input_gradient =
             [x = x.slot, y = y.slot, number = choice.number, first = part.first](Tape& tape) {
               if (!tape.grad(y)) {
                 return;
               }
               if (const Sink sink = tape.sink(x)) {
                 launch(tape.stream(), SelectRows{.index = number,
                                                  .from = tape.grad(y),
                                                  .to = sink.target,
                                                  .first = first,
                                                  .add = sink.add});
               }
             },
         .saved = {choice.number},
         .shape = y.shape()});
  }
  return y;
}

Value put_chosen(Context& context, const Value& x, const Value& fresh, const TokenChoice& choice,
                 const TokenRange& held) {
  const OpScope scope(context.stream, "put_chosen");
  const std::int64_t count = count_of(held, choice.num_sequences * choice.length);
  check_rows("put_chosen", x, count);
  check_rows("put_chosen", fresh, choice.num_chosen());
  const Tensor number = choice.number.range(held.first, {count});
  Value y = context.output(x.dtype(), x.shape());
  launch(context.stream,
         SelectRows{.index = number, .from = fresh.data, .otherwise = x.data, .to = y.data});
  if (context.tape != nullptr) {
    context.tape->record({.op = "put_chosen",
                          .input_gradient =
                              [x = x.slot, fresh = fresh.slot, y = y.slot, number,
                               rows = choice.rows, first = held.first](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                if (const Sink sink = tape.sink(fresh)) {
                                  launch(tape.stream(), SelectRows{.index = rows,
                                                                   .from = tape.grad(y),
                                                                   .to = sink.target,
                                                                   .first = first,
                                                                   .add = sink.add});
                                }
                                if (const Sink sink = tape.sink(x)) {
                                  launch(tape.stream(), SelectRows{.index = number,
                                                                   .otherwise = tape.grad(y),
                                                                   .to = sink.target,
                                                                   .add = sink.add});
                                }
                              },
                          .saved = {choice.rows, choice.number},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
