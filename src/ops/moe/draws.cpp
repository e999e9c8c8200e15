#include "ops/moe/draws.h"

#include "ops/dropout/dropout.h"

namespace bloomery {
namespace {

TokenPlaces places_of(const Batch& batch, const char* op) {
  check(batch.samples && batch.places, op,
        ": random numbers need the coordinates of the tokens; set batch.samples and batch.places");
  return token_places(op, batch.samples, batch.places, batch.num_sequences, batch.length);
}

}  // namespace

Tensor draw_for_tokens(Context& context, DrawKind kind, RandomKey key, std::int64_t columns) {
  const OpScope scope(context.stream, "draw_for_tokens");
  Tensor y = Tensor::empty(context.stream, DType::fp32, {context.batch.num_tokens(), columns});
  launch(
      context.stream,
      DrawTokens{
          .y = y, .places = places_of(context.batch, "draw_for_tokens"), .key = key, .kind = kind});
  return y;
}

Value jitter(Context& context, const Value& x, float epsilon, RandomKey key) {
  const OpScope scope(context.stream, "jitter");
  const Batch& batch = context.batch;
  check(x.shape().rows() == batch.num_tokens(), "jitter: ", x.shape().rows(), " rows for ",
        batch.num_tokens(), " tokens");
  Value y = context.output(x.dtype(), x.shape());
  Jitter kernel{.x = x.data,
                .y = y.data,
                .places = places_of(batch, "jitter"),
                .key = key,
                .epsilon = epsilon};
  launch(context.stream, kernel);
  if (context.tape != nullptr && x.wants_grad()) {
    context.tape->record({.op = "jitter",
                          .input_gradient =
                              [kernel, x = x.slot, y = y.slot, samples = batch.samples,
                               places = batch.places](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                const Sink sink = tape.sink(x);
                                Jitter back = kernel;
                                back.x = tape.grad(y);
                                back.y = sink.target;
                                back.add = sink.add;
                                launch(tape.stream(), back);
                              },
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
