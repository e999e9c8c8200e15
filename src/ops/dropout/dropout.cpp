#include "ops/dropout/dropout.h"

namespace bloomery {

ActiveDropout active_dropout(const Context& context, const DropoutOptions& options,
                             std::int64_t tokens, const char* op) {
  check(options.probability >= 0 && options.probability <= 1, op, ": dropout probability ",
        options.probability, " is not between 0 and 1");
  const std::uint32_t threshold = dropout_threshold(options.probability);
  if (!context.training || threshold == 0) {
    return {};
  }
  const Batch& batch = context.batch;
  check(batch.samples && batch.places, op, ": dropout ", options.probability,
        " needs the coordinates of the tokens; set Batch::samples and Batch::places");
  check(batch.samples.numel() == batch.num_sequences && batch.places.numel() == batch.length, op,
        ": Batch::samples ", batch.samples.shape(), " and Batch::places ", batch.places.shape(),
        " must have one entry per sequence (", batch.num_sequences, ") and position (",
        batch.length, ")");
  check(batch.samples.dtype() == DType::int64 && batch.places.dtype() == DType::int32, op,
        ": Batch::samples must be int64 and Batch::places int32, not ", batch.samples.dtype(),
        " and ", batch.places.dtype());
  check(batch.num_tokens() == tokens, op, ": dropout of ", tokens, " rows in a batch of ",
        batch.num_tokens(), " tokens; rows must be tokens");
  ActiveDropout active{.samples = batch.samples, .places = batch.places};
  active.mask = {.threshold = threshold,
                 .key = options.key,
                 .places = {.samples = static_cast<const std::int64_t*>(batch.samples.data()),
                            .places = static_cast<const std::int32_t*>(batch.places.data()),
                            .length = batch.length}};
  return active;
}

Value dropout(Context& context, const Value& x, const DropoutOptions& options) {
  const ActiveDropout active = active_dropout(context, options, x.shape().rows(), "dropout");
  if (!active.mask) {
    return x;
  }
  const OpScope scope(context.stream, "dropout");
  Value y = context.output(x.dtype(), x.shape());
  launch(context.stream, ApplyDropout{.x = x.data, .y = y.data, .mask = active.mask});
  if (context.tape != nullptr) {
    context.tape->record({.op = "dropout",
                          .input_gradient =
                              [x = x.slot, y = y.slot, active](Tape& tape) {
                                if (!tape.grad(y)) {
                                  return;
                                }
                                if (const Sink sink = tape.sink(x)) {
                                  launch(tape.stream(), ApplyDropout{.x = tape.grad(y),
                                                                     .y = sink.target,
                                                                     .mask = active.mask,
                                                                     .add = sink.add});
                                }
                              },
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
