#include "ops/dropout/dropout.h"

namespace bloomery {

TokenPlaces token_places(const char* op, const Tensor& samples, const Tensor& places,
                         std::int64_t num_sequences, std::int64_t length) {
  const std::int64_t tokens = num_sequences * length;
  check(!samples || (samples.dtype() == DType::int64 &&
                     (samples.numel() == num_sequences || samples.numel() == tokens)),
        op, ": samples are ", samples.dtype(), samples.shape(),
        ", but must be int64, one for each of ", num_sequences, " sequences or of ", tokens,
        " tokens");
  check(places && places.dtype() == DType::int32 &&
            (places.numel() == length || places.numel() == tokens),
        op, ": places are ", places.dtype(), places.shape(),
        ", but must be int32, one for each of ", length, " positions or of ", tokens, " tokens");
  return {.samples = static_cast<const std::int64_t*>(samples.data()),
          .places = static_cast<const std::int32_t*>(places.data()),
          .length = length,
          .sample_per_token = samples && samples.numel() != num_sequences,
          .place_per_token = places.numel() != length};
}

ActiveDropout active_dropout(const Context& context, const DropoutOptions& options,
                             std::int64_t rows, const char* op) {
  check(options.probability >= 0 && options.probability <= 1, op, ": dropout probability ",
        options.probability, " is not between 0 and 1");
  const std::uint32_t threshold = dropout_threshold(options.probability);
  if (!context.training || threshold == 0) {
    return {};
  }
  const Batch& batch = context.batch;
  check(batch.samples && batch.places, op, ": dropout ", options.probability,
        " needs the coordinates of the tokens; set batch.samples and batch.places");
  const TokenRange& tokens = options.tokens;
  const std::int64_t end =
      tokens.count == TokenRange::kRest ? batch.num_tokens() : tokens.first + tokens.count;
  check(tokens.first >= 0 && end <= batch.num_tokens() && end - tokens.first == rows, op,
        ": dropout of ", rows, " rows for tokens [", tokens.first, ", ", end, ") of a batch of ",
        batch.num_tokens(), "; rows must be tokens");
  ActiveDropout active{.samples = batch.samples, .places = batch.places};
  active.mask = {
      .threshold = threshold,
      .key = options.key,
      .places = token_places(op, batch.samples, batch.places, batch.num_sequences, batch.length),
      .first_token = tokens.first};
  return active;
}

Value dropout(Context& context, const Value& x, const DropoutOptions& options,
              std::int64_t first_channel) {
  check(first_channel >= 0 && first_channel % 8 == 0, "dropout: channels from ", first_channel,
        " on; the first must be a multiple of 8");
  ActiveDropout active = active_dropout(context, options, x.shape().rows(), "dropout");
  active.mask.first_block = static_cast<std::uint32_t>(first_channel / 8);
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
