#include "nn/masked_head.h"

#include "autograd/metrics.h"
#include "ops/embedding/embedding.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

// One number per column of the output, cut as those are.
std::unique_ptr<Parameter> vocabulary_bias(const Parameter& weight) {
  Box box = Box::whole({weight.box.global[0]});
  box.offset[0] = weight.box.offset[0];
  box.extent[0] = weight.box.extent[0];
  auto bias = std::make_unique<Parameter>(make_parameter("head.bias", box, {}, false));
  bias->local_shape = {weight.local_shape[0]};
  return bias;
}

constexpr HeadOptions kBinary{.vocabulary = 2, .column_axes = 0, .sequence_axes = 0};

// The samples of a batch as tokens of which each has one of two labels.
Batch swapped_or_not(const Batch& batch) {
  check(static_cast<bool>(batch.is_random),
        "the binary head needs to know which segments were swapped");
  Batch labels;
  labels.num_sequences = batch.num_sequences;
  labels.length = 1;
  labels.labels = batch.is_random;
  labels.grad_scale = batch.grad_scale;
  return labels;
}

}  // namespace

MaskedHead::MaskedHead(const ModelOptions& o, const Mesh& mesh, std::shared_ptr<Parameter> weight,
                       std::int64_t first_token)
    : norm_("final_norm", o.hidden_size, o.norm, mesh),
      transform_("head.transform", o.hidden_size, o.hidden_size,
                 weight_init(o, o.hidden_size, o.hidden_size), mesh,
                 WholeLinear::Rows::local_tokens),
      transform_norm_("head.norm", o.hidden_size, o.norm, mesh),
      activation_(MlpOptions{.kind = o.head_activation}.activation()),
      weight_(std::move(weight)),
      bias_(vocabulary_bias(*weight_)),
      options_{.vocabulary = o.vocabulary.size,
               .first_token = first_token,
               .padded_in_softmax = o.vocabulary.padded_in_softmax,
               .sums_input_gradient = !mesh.divides_tokens()} {
  if (o.segments.binary_head) {
    const auto layer = [&](const char* name, std::int64_t out) {
      return WholeLinear(name, out, o.hidden_size, weight_init(o, o.hidden_size, out), mesh,
                         WholeLinear::Rows::sequences);
    };
    binary_ = std::make_unique<BinaryHead>(layer("pooler", o.hidden_size), layer("binary_head", 2));
  }
}

// What the output is a product with.
Value MaskedHead::transformed(Context& context, const Value& x) const {
  State state{.stream = linear(context, x, *transform_.weight, transform_.bias.get(),
                               {.activation = activation_})};
  return gather_tokens(context, transform_norm_(context, state));
}

State MaskedHead::forward(Context& context, State state) const {
  const LinearInput x = norm_(context, state);
  const bool has_labels = static_cast<bool>(context.batch.labels);
  check(!has_labels || context.metrics != nullptr, "a loss needs a place to be reported to");
  Value hidden = x.value;
  if (const Tensor& rows = context.batch.output_rows; rows && !has_labels) {
    hidden = take_rows(context, hidden, rows);
  }
  const Value y = transformed(context, hidden);
  if (!has_labels) {
    if (binary_ && context.metrics != nullptr) {
      context.metrics->segment_logits =
          head_logits(context, pooled(context, x, binary_->pooler), *binary_->output.weight,
                      kBinary, binary_->output.bias.get())
              .data;
    }
    return {.stream = head_logits(context, y, *weight_, options_, bias_.get())};
  }
  HeadLoss result = head_loss(context, y, *weight_, options_, bias_.get());
  context.metrics->report("lm loss", std::move(result.loss.data));
  context.metrics->token_losses = std::move(result.token_losses);
  if (binary_) {
    const Batch labels = swapped_or_not(context.batch);
    const Value pool = pooled(context, x, binary_->pooler);
    Context of_sequences = context.with_batch(labels);
    context.metrics->report("sop loss", head_loss(of_sequences, pool, *binary_->output.weight,
                                                  kBinary, binary_->output.bias.get())
                                            .loss.data);
  }
  return {};
}

void MaskedHead::collect(ParameterList& parameters) const {
  norm_.collect(parameters);
  transform_.collect(parameters);
  transform_norm_.collect(parameters);
  parameters.push_back(weight_.get());
  parameters.push_back(bias_.get());
  if (binary_) {
    binary_->pooler.collect(parameters);
    binary_->output.collect(parameters);
  }
}

}  // namespace bloomery
