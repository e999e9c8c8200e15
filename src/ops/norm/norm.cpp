#include "ops/norm/norm.h"

#include <algorithm>

#include "autograd/features.h"
#include "ops/arithmetic/sum_sink.h"
#include "ops/norm/add_pending.h"

namespace bloomery {
namespace {

const char* op_name(const NormOptions& options) {
  return options.kind == NormKind::layer ? "layer_norm" : "rms_norm";
}

void check_norm(const Value& stream, const Value& pending, const Parameter& gain,
                const Parameter* bias, const NormOptions& options) {
  check(stream && gain.value, "add_norm: the stream or the gain ", gain.name, " has no data");
  const std::int64_t columns = stream.shape().back();
  check(gain.value.numel() == columns, "add_norm: gain ", gain.name, gain.value.shape(),
        " does not fit a stream of shape ", stream.shape(), "; it needs ", columns, " elements");
  check(addend_fits(stream.dtype(), gain.value.dtype()), "add_norm: a stream of ", stream.dtype(),
        " with gain ", gain.name, " of ", gain.value.dtype(),
        "; both must have one dtype, or the stream fp32 and the gain bf16 or fp16");
  if (bias != nullptr) {
    check(
        bias->value && bias->value.numel() == columns && bias->value.dtype() == gain.value.dtype(),
        "add_norm: bias ", bias->name, " ", bias->value.dtype(), bias->value.shape(),
        " must be like the gain ", gain.name, " ", gain.value.dtype(), gain.value.shape());
  }
  if (pending) {
    check(pending.shape() == stream.shape() && pending.dtype() == gain.value.dtype(),
          "add_norm: pending ", pending.dtype(), pending.shape(),
          " must have the shape of the stream ", stream.shape(), " and the dtype of the gain ",
          gain.value.dtype());
  }
  check(options.epsilon >= 0, "add_norm: epsilon ", options.epsilon, " is negative");
}

// What backward needs. `out` is the slot of the sum, that of the stream itself when there was
// nothing to add.
struct NormRecord {
  NormOptions options;
  Parameter* gain;
  Parameter* bias;
  Slot stream, pending, out, y;
  Tensor x, statistics;
  ActiveDropout dropout;
  std::shared_ptr<Tensor> partials;  // from the input gradient to the weight gradient
};

// Where the gradient of the sum goes. The first choice is the buffer in which the later uses left
// their part; the stream takes it over and the branch reads it as well.
void choose_targets(Tape& tape, const NormRecord& record, NormBackward& kernel) {
  Sink stream, pending;
  if (record.out == record.stream) {
    stream = tape.sink(record.stream);
    if (stream.add) {  // one rounding of the sum, as when there is a branch to add
      kernel.later = stream.target;
      stream.add = false;
    }
  } else {
    kernel.later = tape.grad(record.out);
    const bool in_place =
        kernel.later && tape.exclusive(record.out) && tape.adopt(record.stream, record.out);
    stream = in_place ? Sink{tape.grad(record.stream), false} : tape.sink(record.stream);
    const bool same = stream && !stream.add && !record.dropout.mask;
    if (!(same && tape.share(record.pending, record.stream))) {
      pending = tape.sink(record.pending);
    }
  }
  kernel.d_stream = stream.target;
  kernel.add_stream = stream.add;
  kernel.d_pending = pending.target;
  kernel.add_pending = pending.add;
}

void input_gradient(Tape& tape, const NormRecord& record) {
  const Tensor dy = tape.grad(record.y);
  if (!dy) {
    if (record.out != record.stream) {
      add_pending_backward(tape, {record.stream, record.pending, record.out, record.dropout});
    }
    return;
  }
  const std::int64_t rows = record.x.shape().rows(), columns = record.x.shape().back();
  *record.partials =
      Tensor::empty(tape.stream(), record.statistics.dtype(),
                    {num_norm_partials(rows, columns), record.bias != nullptr ? 2 : 1, columns});
  NormBackward kernel{.options = record.options,
                      .dy = dy,
                      .x = record.x,
                      .gain = record.gain->value,
                      .statistics = record.statistics,
                      .mask = record.dropout.mask,
                      .partials = *record.partials};
  choose_targets(tape, record, kernel);
  launch(tape.stream(), kernel);
}

void clear(Stream& stream, const Sink& sink) {
  if (sink && !sink.add) {
    stream.fill(sink.target.data(), 0, sink.target.bytes());
  }
}

void weight_gradient(Tape& tape, Parameter& gain, Parameter* bias, const Tensor& partials) {
  const Sink d_gain = tape.sink(gain);
  const Sink d_bias = bias != nullptr ? tape.sink(*bias) : Sink{};
  if (!partials) {  // nobody used the normalised value
    clear(tape.stream(), d_gain);
    clear(tape.stream(), d_bias);
    return;
  }
  const SumSink gain_sums(tape.stream(), d_gain, partials.dtype());
  const SumSink bias_sums(tape.stream(), d_bias, partials.dtype());
  launch(tape.stream(), NormParameterGradient{.partials = partials,
                                              .d_gain = gain_sums.target(),
                                              .d_bias = bias_sums.target(),
                                              .add_gain = gain_sums.add(),
                                              .add_bias = bias_sums.add()});
  gain_sums.finish();
  bias_sums.finish();
}

void record_norm(Tape& tape, NormRecord record, const Shape& shape) {
  Entry entry{.op = op_name(record.options)};
  entry.parameters = {record.gain};
  if (record.bias != nullptr) {
    entry.parameters.push_back(record.bias);
  }
  entry.saved = {record.x, record.statistics};
  entry.shape = shape;
  record.partials = std::make_shared<Tensor>();
  entry.weight_gradient = [gain = record.gain, bias = record.bias, partials = record.partials](
                              Tape& root) { weight_gradient(root, *gain, bias, *partials); };
  entry.input_gradient = [record = std::move(record)](Tape& at) { input_gradient(at, record); };
  tape.record(std::move(entry));
}

// The stream is kept for the norm's own backward.
Rematerialize remake_of(const NormResult& result, const Parameter& gain, const Parameter* bias,
                        const NormOptions& options) {
  return [x = result.stream.data, dtype = result.y.dtype(), &gain, bias, options](Stream& stream) {
    Tensor y = Tensor::empty(stream, dtype, x.shape());
    launch(stream, NormForward{.options = options,
                               .stream = x,
                               .gain = gain.value,
                               .bias = bias != nullptr ? bias->value : Tensor(),
                               .y = y});
    return y;
  };
}

}  // namespace

std::int64_t num_norm_partials(std::int64_t rows, std::int64_t columns) {
  // Up to 768 columns a row takes a warp, eight to a block and two blocks to each of 132
  // processors; a longer one a block with a warp per 512 columns, sixteen warps to a processor.
  // Sixteen rows or more per block, so that the sums cost little beside the rows.
  constexpr std::int64_t kProcessors = 132;
  const std::int64_t warps = std::min<std::int64_t>((columns + 511) / 512, 16);
  const std::int64_t resident = columns <= 768 ? 2 : 16 / warps;
  return std::clamp<std::int64_t>((rows + 15) / 16, 1, kProcessors * resident);
}

NormResult add_norm(Context& context, const Value& stream, const Value& pending, Parameter& gain,
                    Parameter* bias, const NormOptions& options, const DropoutOptions& dropout) {
  const OpScope scope(context.stream, op_name(options));
  check_norm(stream, pending, gain, bias, options);
  const ActiveDropout active =
      pending ? active_dropout(context, dropout, stream.shape().rows(), "add_norm")
              : ActiveDropout{};
  NormResult result{.stream = pending ? context.output(stream.dtype(), stream.shape()) : stream,
                    .y = context.output(gain.value.dtype(), stream.shape())};
  Tensor statistics;
  if (context.tape != nullptr) {
    statistics = Tensor::empty(context.stream, accumulation_dtype(stream.dtype()),
                               {stream.shape().rows(), options.kind == NormKind::layer ? 2 : 1});
  }
  launch(context.stream, NormForward{.options = options,
                                     .stream = stream.data,
                                     .pending = pending.data,
                                     .gain = gain.value,
                                     .bias = bias != nullptr ? bias->value : Tensor(),
                                     .out = pending ? result.stream.data : Tensor(),
                                     .y = result.y.data,
                                     .statistics = statistics,
                                     .mask = active.mask});
  if (context.tape != nullptr) {
    if (context.features.activations.remake_cheap_values) {
      result.rematerialize = remake_of(result, gain, bias, options);
    }
    record_norm(*context.tape,
                {.options = options,
                 .gain = &gain,
                 .bias = bias,
                 .stream = stream.slot,
                 .pending = pending.slot,
                 .out = result.stream.slot,
                 .y = result.y.slot,
                 .x = result.stream.data,
                 .statistics = statistics,
                 .dropout = active},
                result.y.shape());
  }
  return result;
}

}  // namespace bloomery
