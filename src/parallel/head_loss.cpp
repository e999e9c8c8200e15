#include "parallel/head_loss.h"

#include <algorithm>
#include <optional>

#include "base/round_up.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/loss/loss.h"
#include "ops/matmul/matmul.h"
#include "ops/transpose/transpose.h"

namespace bloomery {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// That stand for tokens.
std::int64_t num_real_columns(const Parameter& weight, const HeadOptions& options) {
  return std::clamp<std::int64_t>(options.vocabulary - options.first_token, 0,
                                  weight.value.shape()[0]);
}

LossColumns columns_of(const Parameter& weight, const HeadOptions& options) {
  return {.first_token = options.first_token,
          .num_valid = options.padded_in_softmax ? weight.value.shape()[0]
                                                 : num_real_columns(weight, options)};
}

void check_head(const Value& x, const Parameter& weight, const HeadOptions& options,
                const Parameter* bias) {
  const Tensor& w = weight.value;
  check(x.shape().rank() == 2 && w.shape().rank() == 2 && x.shape()[1] == w.shape()[1] &&
            x.dtype() == w.dtype(),
        "head: x ", x.dtype(), x.shape(), " and weight ", weight.name, " ", w.dtype(), w.shape(),
        " must be [tokens, hidden] and [columns, hidden] of one dtype");
  check(bias == nullptr ||
            (bias->value.shape() == Shape{w.shape()[0]} && bias->value.dtype() == w.dtype()),
        "head: the bias must be ", w.dtype(), Shape{w.shape()[0]}, " beside weight ", weight.name);
  check(options.vocabulary > 0 && options.first_token >= 0, "head: vocabulary ", options.vocabulary,
        " with first token ", options.first_token, ": give the global size of the vocabulary");
}

void check_batch(const Batch& batch, std::int64_t tokens) {
  const Shape expected{tokens};
  check(batch.labels && batch.labels.dtype() == DType::int32 && batch.labels.shape() == expected,
        "head_loss: ", tokens, " tokens need int32 labels of shape ", expected, ", not ",
        batch.labels.dtype(), batch.labels.shape());
  check(!batch.loss_mask ||
            (batch.loss_mask.dtype() == DType::fp32 && batch.loss_mask.shape() == expected),
        "head_loss: the loss mask must be fp32", expected, ", not ", batch.loss_mask.dtype(),
        batch.loss_mask.shape());
}

// Large enough that the products run at full speed although each chunk reads the weight twice and
// updates its gradient once, small enough not to matter beside the activations. Equal chunks.
std::int64_t choose_chunk(const Stream& stream, std::int64_t tokens, std::int64_t row_bytes) {
  const bool on_cuda = stream.device().rules() == DeviceKind::cuda;
  const std::int64_t bytes = on_cuda ? 1638 * kMiB : 128 * kMiB;
  const std::int64_t least = on_cuda ? 8192 : 256, multiple = on_cuda ? 128 : 16;
  const std::int64_t limit = std::max(least, bytes / std::max<std::int64_t>(1, row_bytes));
  const std::int64_t num_chunks = std::max<std::int64_t>(1, (tokens + limit - 1) / limit);
  const std::int64_t chunk = (tokens + num_chunks - 1) / num_chunks;
  return round_up(chunk, multiple);
}

// x weight^T + bias.
void multiply(Stream& stream, const Tensor& x, const Parameter& weight, const Parameter* bias,
              const Tensor& logits) {
  launch(stream, Matmul{.a = x,
                        .b = weight.value,
                        .d = logits,
                        .transpose_b = true,
                        .b_lasts = true,
                        .bias = bias != nullptr ? ConstView(bias->value) : ConstView()});
}

Tensor slice(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  return tensor ? tensor.slice(begin, end) : tensor;
}

// One forward pass over the chunks.
class HeadPass {
 public:
  HeadPass(Context& context, const Value& x, Parameter& weight, const HeadOptions& options,
           Parameter* bias, const Distillation* distillation)
      : context_(context),
        stream_(context.stream),
        ranks_(context.mesh.axes(options.column_axes)),
        x_(x.data),
        weight_(weight),
        bias_(bias),
        columns_(columns_of(weight, options)),
        vocabulary_(options.vocabulary),
        sums_input_gradient_(options.sums_input_gradient),
        sum_dtype_(accumulation_dtype(x.dtype())) {
    const std::int64_t tokens = x.shape()[0];
    inverse_ = Tensor::empty(stream_, sum_dtype_, {1});
    losses_ = Tensor::empty(stream_, sum_dtype_, {tokens});
    if (options.weighted) {
      launch(stream_, LossMaskSum{.num_tokens = 1, .inverse = inverse_});  // one
    } else {
      sum_mask(tokens, context.mesh.axes(options.sequence_axes));
    }
    if (context.tape != nullptr) {
      weight_sink_ = weight.frozen ? Sink() : context.tape->sink(weight);
      bias_sink_ = bias != nullptr && !bias->frozen ? context.tape->sink(*bias) : Sink();
      if (x.wants_grad()) {
        grad_x_ = Tensor::empty(stream_, x.dtype(), x.shape());
      }
    }
    if (distillation != nullptr) {
      distillation_.emplace(context, *distillation, ranks_, num_real_columns(weight, options),
                            inverse_);
    }
  }

  void run(std::int64_t chunk_tokens) {
    const std::int64_t tokens = x_.shape()[0];
    const Tensor buffer = Tensor::empty(stream_, x_.dtype(),
                                        {std::min(tokens, chunk_tokens), weight_.value.shape()[0]});
    for (std::int64_t begin = 0; begin < tokens; begin += chunk_tokens) {
      const std::int64_t end = std::min(tokens, begin + chunk_tokens);
      run_chunk(begin, end, buffer.slice(0, end - begin));
    }
    for (const Sink& sink : {weight_sink_, bias_sink_}) {
      if (tokens == 0 && sink && !sink.add) {
        stream_.fill(sink.target.data(), 0, sink.target.bytes());
      }
    }
    if (grad_x_ && sums_input_gradient_) {
      ranks_.all_reduce(grad_x_, Reduce::sum, stream_);  // each rank has only its columns' part
    }
  }

  Tensor mean_loss() const {
    Tensor loss = Tensor::empty(stream_, sum_dtype_, {1});
    launch(stream_, LossMean{.losses = losses_,
                             .mask = context_.batch.loss_mask,
                             .inverse = inverse_,
                             .loss = loss});
    return loss;
  }
  const Tensor& token_losses() const { return losses_; }
  Tensor distillation_loss() const { return distillation_ ? distillation_->mean_loss() : Tensor(); }
  const Tensor& grad_x() const { return grad_x_; }

 private:
  bool with_gradients() const { return context_.tape != nullptr; }

  // inverse_ of the mask's sum over the tokens of all `ranks`.
  void sum_mask(std::int64_t tokens, Communicator& ranks) {
    const Tensor& mask = context_.batch.loss_mask;
    if (ranks.size() == 1) {
      return launch(stream_, LossMaskSum{.mask = mask, .num_tokens = tokens, .inverse = inverse_});
    }
    const Tensor sum = Tensor::empty(stream_, DType::fp32, {1});
    launch(stream_, LossMaskSum{.mask = mask, .num_tokens = tokens, .sum = sum});
    ranks.all_reduce(sum, Reduce::sum, stream_);
    launch(stream_, LossMaskSum{.mask = sum, .num_tokens = 1, .inverse = inverse_});
  }

  void run_chunk(std::int64_t begin, std::int64_t end, const Tensor& logits) {
    const Tensor x = x_.slice(begin, end);
    const Tensor labels = context_.batch.labels.slice(begin, end);
    const Tensor mask = slice(context_.batch.loss_mask, begin, end);
    multiply(stream_, x, weight_, bias_, logits);
    const Tensor from_teacher =
        distillation_ ? distillation_->run(begin, end, logits, with_gradients()) : Tensor();
    if (with_gradients() && ranks_.size() == 1) {
      launch(stream_, LossAndGradient{.logits = logits,
                                      .labels = labels,
                                      .columns = columns_,
                                      .mask = mask,
                                      .inverse = inverse_,
                                      .grad_scale = context_.batch.grad_scale,
                                      .vocabulary = vocabulary_,
                                      .losses = losses_.slice(begin, end)});
    } else {
      run_loss_over_ranks(logits, labels, mask, losses_.slice(begin, end));
    }
    if (from_teacher) {
      launch(stream_, ScaleAdd{.x = from_teacher, .y = logits, .add = true});
    }
    if (with_gradients()) {
      multiply_gradient(logits, x, begin, end);
    }
  }

  // Of logits whose columns other ranks may hold too: `losses` and, with a tape, the gradient in
  // their place.
  void run_loss_over_ranks(const Tensor& logits, const Tensor& labels, const Tensor& mask,
                           const Tensor& losses) {
    const Tensor statistics = Tensor::empty(stream_, sum_dtype_, {4, logits.shape()[0]});
    const Tensor local_max = statistics.slice(0, 1), max = statistics.slice(1, 2);
    const Tensor sum = statistics.slice(2, 3), target = statistics.slice(3, 4);
    launch(stream_, LossStatistics{.logits = logits,
                                   .labels = labels,
                                   .columns = columns_,
                                   .local_max = local_max,
                                   .max = max,
                                   .sum = sum,
                                   .target = target});
    ranks_.all_reduce(max, Reduce::max, stream_);
    launch(stream_, LossRescale{.local_max = local_max, .max = max, .sum = sum});
    ranks_.all_reduce(statistics.slice(2, 4), Reduce::sum, stream_);
    launch(stream_, LossTokens{.max = max,
                               .sum = sum,
                               .target = target,
                               .labels = labels,
                               .mask = mask,
                               .vocabulary = vocabulary_,
                               .losses = losses});
    if (with_gradients()) {
      launch(stream_, LossGradient{.logits = logits,
                                   .labels = labels,
                                   .columns = columns_,
                                   .max = max,
                                   .sum = sum,
                                   .mask = mask,
                                   .inverse = inverse_,
                                   .grad_scale = context_.batch.grad_scale});
    }
  }

  // dx = dlogits W, dW += dlogits^T x, and the bias gets the sum of dlogits over tokens.
  void multiply_gradient(const Tensor& grad_logits, const Tensor& x, std::int64_t begin,
                         std::int64_t end) {
    if (grad_x_) {
      launch(stream_, Matmul{.a = grad_logits, .b = weight_.value, .d = grad_x_.slice(begin, end)});
    }
    if (weight_sink_) {
      launch(stream_, Matmul{.a = grad_logits,
                             .b = x,
                             .d = weight_sink_.target,
                             .transpose_a = true,
                             .add = weight_sink_.add});
      weight_sink_.add = true;
    }
    if (bias_sink_) {
      launch(stream_,
             ColumnSum{.x = grad_logits, .sums = bias_sink_.target, .add = bias_sink_.add});
      bias_sink_.add = true;
    }
  }

  Context& context_;
  Stream& stream_;
  Communicator& ranks_;
  const Tensor x_;
  Parameter& weight_;
  Parameter* const bias_;  // or null
  const LossColumns columns_;
  const std::int64_t vocabulary_;
  const bool sums_input_gradient_;
  const DType sum_dtype_;
  Tensor inverse_, losses_, grad_x_;
  Sink weight_sink_, bias_sink_;  // null without a tape, and of what is frozen
  std::optional<DistillPass> distillation_;
};

void record(Tape& tape, const Slot& x, const Tensor& grad_x, const ParameterList& parameters) {
  tape.record({.op = "head_loss",
               .input_gradient =
                   [x, grad_x](Tape& tape) {
                     if (x != nullptr && !x->grad) {
                       tape.set_grad(x, grad_x);
                     } else if (x != nullptr) {
                       write_grad(tape.stream(), grad_x, tape.sink(x));
                     }
                   },
               .parameters = parameters,
               .saved = {grad_x},
               .shape = {1}});
}

}  // namespace

HeadLoss head_loss(Context& context, const Value& x, Parameter& weight, const HeadOptions& options,
                   Parameter* bias, const Distillation* distillation) {
  const OpScope scope(context.stream, "head_loss");
  check(!context.recomputing,
        "head_loss: computes its gradients in the forward pass and cannot be recomputed; leave it "
        "out of the segment");
  check_head(x, weight, options, bias);
  check_batch(context.batch, x.shape()[0]);
  const std::int64_t row_bytes = weight.value.shape()[0] *
                                 static_cast<std::int64_t>(size_of(x.dtype())) *
                                 (distillation != nullptr ? 2 : 1);
  HeadPass pass(context, x, weight, options, bias, distillation);
  pass.run(options.chunk_tokens > 0 ? options.chunk_tokens
                                    : choose_chunk(context.stream, x.shape()[0], row_bytes));
  if (context.tape != nullptr) {
    record(*context.tape, x.slot, pass.grad_x(),
           bias != nullptr ? ParameterList{&weight, bias} : ParameterList{&weight});
  }
  return {.loss = {pass.mean_loss(), nullptr},
          .token_losses = pass.token_losses(),
          .distillation = pass.distillation_loss()};
}

Value head_logits(Context& context, const Value& x, Parameter& weight, const HeadOptions& options,
                  const Parameter* bias) {
  const OpScope scope(context.stream, "head_logits");
  check_head(x, weight, options, bias);
  Tensor logits = Tensor::empty(context.stream, x.dtype(), {x.shape()[0], weight.value.shape()[0]});
  multiply(context.stream, x.data, weight, bias, logits);
  launch(context.stream,
         MaskColumns{.logits = logits, .num_valid = columns_of(weight, options).num_valid});
  return {std::move(logits), nullptr};
}

Tensor logits_of_all_ranks(Stream& stream, Mesh& mesh, const Tensor& logits) {
  const std::int64_t ranks = mesh.degree(Axis::tensor);
  if (ranks == 1) {
    return logits;
  }
  const OpScope scope(stream, "logits_of_all_ranks");
  const std::int64_t tokens = logits.shape()[0], columns = logits.shape()[1];
  const Tensor parts = Tensor::empty(stream, logits.dtype(), {ranks * tokens, columns});
  mesh.axis(Axis::tensor).all_gather(logits, parts, stream);
  Tensor all = Tensor::empty(stream, logits.dtype(), {tokens, ranks * columns});
  launch(stream, Transpose{.x = parts, .y = all, .first = ranks, .second = tokens});
  return all;
}

}  // namespace bloomery
