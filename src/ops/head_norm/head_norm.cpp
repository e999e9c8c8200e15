#include "ops/head_norm/head_norm.h"

#include "ops/norm/norm.h"

namespace bloomery {
namespace {

constexpr const char* kOp = "head_norm";

struct Record {
  HeadNormOptions options;
  std::int64_t num_tokens;
  Tensor x;
  Slot x_slot, y_slot;
  Parameter *query_gain, *key_gain;
};

// Null where nobody used the output.
Tensor input_gradient(Tape& tape, const Record& r) {
  const Tensor dy = tape.grad(r.y_slot);
  if (!dy) {
    return {};
  }
  const std::int64_t blocks =
      (r.num_tokens + kTokensPerHeadNormPartial - 1) / kTokensPerHeadNormPartial;
  Tensor partials = Tensor::empty(tape.stream(), accumulation_dtype(r.x.dtype()),
                                  {blocks, 2, r.options.head_dim});
  const Sink dx = tape.sink(r.x_slot);
  launch(tape.stream(), HeadNormBackward{.options = r.options,
                                         .num_tokens = r.num_tokens,
                                         .dy = dy,
                                         .x = r.x,
                                         .query_gain = r.query_gain->value,
                                         .key_gain = r.key_gain->value,
                                         .dx = dx.target,
                                         .add = dx.add,
                                         .partials = partials});
  return partials;
}

void weight_gradient(Tape& tape, Parameter& query_gain, Parameter& key_gain,
                     const Tensor& partials) {
  const Sink query = tape.sink(query_gain), key = tape.sink(key_gain);
  if (partials) {
    launch(tape.stream(), NormParameterGradient{.partials = partials,
                                                .d_gain = query.target,
                                                .d_bias = key.target,
                                                .add_gain = query.add,
                                                .add_bias = key.add});
    return;
  }
  for (const Sink& sink : {query, key}) {
    if (!sink.add) {
      tape.stream().fill(sink.target.data(), 0, sink.target.bytes());
    }
  }
}

}  // namespace

Value head_norm(Context& context, const Value& qkv, Parameter& query_gain, Parameter& key_gain,
                const HeadNormOptions& options) {
  const OpScope scope(context.stream, kOp);
  const std::int64_t width = options.num_groups * (options.heads_per_group + 2) * options.head_dim;
  check(qkv.shape().rank() >= 2 && width > 0 && qkv.data.numel() == qkv.shape()[0] * width, kOp,
        ": qkv has shape ", qkv.shape(), ", expected tokens of ", width, " numbers");
  for (const Parameter* gain : {&query_gain, &key_gain}) {
    check(gain->value.numel() == options.head_dim && gain->value.dtype() == qkv.dtype(), kOp, ": ",
          gain->name, " is ", gain->value.dtype(), gain->value.shape(), " for heads of ",
          options.head_dim, " in ", qkv.dtype());
  }
  const std::int64_t num_tokens = qkv.shape()[0];
  Value y = context.output(qkv.dtype(), qkv.shape());
  launch(context.stream, HeadNormForward{.options = options,
                                         .num_tokens = num_tokens,
                                         .x = qkv.data,
                                         .query_gain = query_gain.value,
                                         .key_gain = key_gain.value,
                                         .y = y.data});
  if (context.tape != nullptr) {
    const auto partials = std::make_shared<Tensor>();
    const Record record{options, num_tokens, qkv.data, qkv.slot, y.slot, &query_gain, &key_gain};
    context.tape->record(
        {.op = kOp,
         .input_gradient = [record,
                            partials](Tape& tape) { *partials = input_gradient(tape, record); },
         .weight_gradient = [query = &query_gain, key = &key_gain, partials](
                                Tape& tape) { weight_gradient(tape, *query, *key, *partials); },
         .parameters = {&query_gain, &key_gain},
         .saved = {qkv.data},
         .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
